// Where the unit is the row, the kernel is that of one row over all rows: a product of rows with a
// parameter is one dense product, and what a call has once is an operand a row.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0 attributes {lengths = [@dim.0], rows = [@dim.0], sym_visibility = "private", takes = [#cfb<takes ragged>, #cfb<takes row>, #cfb<takes scalar>], unit = #cfb<unit rows>}
// CHECK-NEXT: ^bb0(%[[ROWS:.*]]: index, %{{.*}}: tensor<?xindex>, %[[X:.*]]: tensor<?x8xf32>, %[[B:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<?xf32>):
// CHECK: linalg.matmul ins(%[[X]], %{{.*}} : tensor<?x8xf32>, tensor<8x4xf32>)
// CHECK: arith.addf %{{.*}}, %[[B]] : tensor<?x4xf32>
// CHECK: linalg.reduce { arith.maximumf } ins(%{{.*}} : tensor<?x4xf32>) outs(%{{.*}} : tensor<?xf32>) dimensions = [1]
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<?x1xf32>) outs(%{{.*}} : tensor<?x1x4xf32>) dimensions = [2]
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = cfb.dim %[[H:.*]], 0 : !cfb.lazy<tensor<?x8xf32>>
// CHECK: cfb.record @f_0(%[[N]], %[[H]], %{{.*}}, %{{.*}}) : (index, !cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<4xf32>>, f32) -> !cfb.lazy<tensor<?x1x4xf32>>
ml_program.global private @w(#ml_program.extern<tensor<8x4xf32>>) : tensor<8x4xf32>
func.func @main(%x: tensor<?x8xf32>, %b: tensor<4xf32>, %s: f32) -> tensor<?x1x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %w = ml_program.global_load_const @w : tensor<8x4xf32>
  %r = cfb.block "f"(%n, %x, %w, %b, %s) : (index, tensor<?x8xf32>, tensor<8x4xf32>, tensor<4xf32>, f32) -> tensor<?x1x4xf32>
      attributes {leading = [[@dim.0], [], [], []], lengths = [@dim.0], reuse = [#cfb<reuse row>, #cfb<reuse row>, #cfb<reuse shared>, #cfb<reuse row>, #cfb<reuse row>], rows = [@dim.0], unit = #cfb<unit rows>} {
  ^bb0(%l: index, %a: tensor<?x8xf32>, %v: tensor<8x4xf32>, %c: tensor<4xf32>, %k: f32):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%l) : tensor<?x4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %p = linalg.matmul ins(%a, %v : tensor<?x8xf32>, tensor<8x4xf32>) outs(%z : tensor<?x4xf32>) -> tensor<?x4xf32>
    %cb = linalg.broadcast ins(%c : tensor<4xf32>) outs(%e : tensor<?x4xf32>) dimensions = [0]
    %q = arith.addf %p, %cb : tensor<?x4xf32>
    %e1 = tensor.empty(%l) : tensor<?xf32>
    %z1 = linalg.fill ins(%k : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
    %m = linalg.reduce { arith.maximumf } ins(%q : tensor<?x4xf32>) outs(%z1 : tensor<?xf32>) dimensions = [1]
    %x1 = tensor.expand_shape %m [[0, 1]] output_shape [%l, 1] : tensor<?xf32> into tensor<?x1xf32>
    %e2 = tensor.empty(%l) : tensor<?x1x4xf32>
    %mb = linalg.broadcast ins(%x1 : tensor<?x1xf32>) outs(%e2 : tensor<?x1x4xf32>) dimensions = [2]
    cfb.yield %mb : tensor<?x1x4xf32>
  }
  return %r : tensor<?x1x4xf32>
}
