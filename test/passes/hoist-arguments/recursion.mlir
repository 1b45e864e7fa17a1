// A function hands its parent on to the next child: what the kernel makes of the parent alone is computed by who calls
// with another, and handed on with it. A product that started from another starts from the row that it is given.
// RUN: %batch-opt %s --hoist-arguments --canonicalize | %FileCheck %s

ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @v(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>

// CHECK: cfb.kernel @cell_head
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[P:.*]]: tensor<?x64xf32>):
// CHECK: %[[Q:.*]] = linalg.matmul ins(%[[P]],
// CHECK: cfb.yield %[[Q]]
// CHECK: cfb.kernel @cell {
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[L:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<?x64xf32>):
// CHECK-NOT: @u
// CHECK: %[[R:.*]] = linalg.matmul ins(%[[L]], %{{.*}}) outs(%[[G]] :
// CHECK: math.tanh %[[R]]
cfb.kernel @cell {
^bb0(%rows: index, %parent: tensor<?x64xf32>, %last: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %v = ml_program.global_load_const @v : tensor<64x64xf32>
  %b = ml_program.global_load_const @b : tensor<64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %bs = linalg.broadcast ins(%b : tensor<64xf32>) outs(%e : tensor<?x64xf32>) dimensions = [0]
  %p = linalg.matmul ins(%parent, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%bs : tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = linalg.matmul ins(%last, %v : tensor<?x64xf32>, tensor<64x64xf32>) outs(%p : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = math.tanh %q : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]*]]:
// CHECK: %[[H:.*]] = cfb.record @cell_head(%[[X]])
// CHECK: call @next(%[[X]], %[[X]], %{{.*}}, %[[H]])
func.func @main(%x: !cfb.lazy<tensor<64xf32>>, %k: i32) -> !cfb.lazy<tensor<64xf32>> {
  %r = func.call @next(%x, %x, %k) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, i32) -> !cfb.lazy<tensor<64xf32>>
  return %r : !cfb.lazy<tensor<64xf32>>
}

// CHECK-LABEL: func.func private @next(
// CHECK-SAME: %[[P:[a-z0-9]*]]: !cfb.lazy<tensor<64xf32>>, %[[L:[a-z0-9]*]]: !cfb.lazy<tensor<64xf32>>, %{{[a-z0-9]*}}: i32, %[[G:[a-z0-9]*]]: !cfb.lazy<tensor<64xf32>>)
// CHECK: %[[S:.*]] = cfb.record @cell(%[[L]], %[[G]])
// CHECK: scf.if
// CHECK: call @next(%[[P]], %[[S]], %{{.*}}, %[[G]])
// CHECK: else
// CHECK: %[[N:.*]] = cfb.record @cell_head(%[[S]])
// CHECK: call @next(%[[S]], %[[L]], %{{.*}}, %[[N]])
func.func private @next(%parent: !cfb.lazy<tensor<64xf32>>, %last: !cfb.lazy<tensor<64xf32>>, %k: i32) -> !cfb.lazy<tensor<64xf32>> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %h = cfb.record @cell(%parent, %last) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  %l = arith.subi %k, %c1 : i32
  %goes_on = arith.cmpi sgt, %k, %c0 : i32
  %r = scf.if %goes_on -> (!cfb.lazy<tensor<64xf32>>) {
    %a = func.call @next(%parent, %h, %l) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, i32) -> !cfb.lazy<tensor<64xf32>>
    scf.yield %a : !cfb.lazy<tensor<64xf32>>
  } else {
    %a = func.call @next(%h, %last, %l) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, i32) -> !cfb.lazy<tensor<64xf32>>
    scf.yield %a : !cfb.lazy<tensor<64xf32>>
  }
  return %r : !cfb.lazy<tensor<64xf32>>
}
