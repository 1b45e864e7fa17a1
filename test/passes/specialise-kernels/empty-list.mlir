// A leaf has no children: its call takes neither their list nor that of the same length, and what the product
// makes of the sum of nothing, which starts from a bias that all rows share, is computed at load.
// RUN: %batch-opt %s --specialise-kernels | %FileCheck %s
// RUN: %batch-opt %s --specialise-kernels --hoist-constants --canonicalize --cse | %FileCheck %s --check-prefix=HOISTED

ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
cfb.adt @Tree ["Tree"] [[!cfb.array<!cfb.adt<@Tree>>]]

// CHECK: cfb.kernel @cell_base
// CHECK-NEXT: ^bb0(%[[ROWS:.*]]: index, %[[X:.*]]: tensor<?x64xf32>):
// CHECK-NOT: cfb.reduce_rows
// CHECK: linalg.matmul
// CHECK: cfb.kernel @cell {
// CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: !cfb.rows<tensor<64xf32>>, %{{.*}}: tensor<?x64xf32>, %{{.*}}: !cfb.rows<tensor<64xf32>>):

// HOISTED: cfb.kernel @compute_0
// HOISTED: linalg.matmul
// HOISTED: cfb.kernel @cell_base
// HOISTED: %[[S:.*]] = ml_program.global_load_const @computed_0 : tensor<64xf32>
// HOISTED: linalg.broadcast ins(%[[S]] : tensor<64xf32>)
// HOISTED-NOT: linalg.matmul
// HOISTED: cfb.kernel @cell {
cfb.kernel @cell {
^bb0(%rows: index, %hs: !cfb.rows<tensor<64xf32>>, %x: tensor<?x64xf32>, %cs: !cfb.rows<tensor<64xf32>>):
  %zero = arith.constant 0.0 : f32
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %b = ml_program.global_load_const @b : tensor<64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = cfb.reduce_rows %hs init(%z) : (!cfb.rows<tensor<64xf32>>, tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    cfb.yield %s : f32
  }
  %bs = linalg.broadcast ins(%b : tensor<64xf32>) outs(%e : tensor<?x64xf32>) dimensions = [0]
  %p = linalg.matmul ins(%h, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%bs : tensor<?x64xf32>) -> tensor<?x64xf32>
  %c = cfb.reduce_rows %cs init(%z) : (!cfb.rows<tensor<64xf32>>, tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    cfb.yield %s : f32
  }
  %q = arith.addf %p, %x : tensor<?x64xf32>
  %y = arith.addf %q, %c : tensor<?x64xf32>
  cfb.yield %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @f
// CHECK: %[[N:.*]] = cfb.array_len %[[A:.*]] : !cfb.array<!cfb.adt<@Tree>>
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[N]], %{{.*}} : i32
// CHECK: %[[Y:[0-9]+]] = scf.if %[[NONE]] -> (!cfb.lazy<tensor<64xf32>>) {
// CHECK-NEXT: %[[L:[0-9]+]] = cfb.record @cell_base(%[[ROW:[a-z0-9]+]]) : (!cfb.lazy<tensor<64xf32>>)
// CHECK-NEXT: scf.yield %[[L]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[I:[0-9]+]] = cfb.record @cell(%{{[0-9]+}}, %[[ROW]], %{{[0-9]+}})
// CHECK-NEXT: scf.yield %[[I]]
// CHECK: cfb.yield %[[Y]]
func.func @f(%t: !cfb.adt<@Tree>, %x: !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>> {
  %y = cfb.match %t : !cfb.adt<@Tree> -> (!cfb.lazy<tensor<64xf32>>) ({
  ^bb0(%children: !cfb.array<!cfb.adt<@Tree>>):
    %hs = cfb.map %children : (!cfb.array<!cfb.adt<@Tree>>) -> !cfb.array<!cfb.lazy<tensor<64xf32>>> {
    ^bb0(%child: !cfb.adt<@Tree>):
      %h = func.call @f(%child, %x) : (!cfb.adt<@Tree>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
      cfb.yield %h : !cfb.lazy<tensor<64xf32>>
    }
    %cs = cfb.array_reverse %hs : !cfb.array<!cfb.lazy<tensor<64xf32>>>
    %r = cfb.record @cell(%hs, %x, %cs) : (!cfb.array<!cfb.lazy<tensor<64xf32>>>, !cfb.lazy<tensor<64xf32>>, !cfb.array<!cfb.lazy<tensor<64xf32>>>) -> !cfb.lazy<tensor<64xf32>>
    cfb.yield %r : !cfb.lazy<tensor<64xf32>>
  })
  return %y : !cfb.lazy<tensor<64xf32>>
}
