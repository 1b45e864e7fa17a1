// A vector times a shared matrix is one dense product over all rows, and the control program
// records it.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<4x6xf32>>) : tensor<4x6xf32>

// CHECK: cfb.kernel @f_0
// CHECK: ^bb0(%[[ROWS:.*]]: index, %[[X:.*]]: tensor<?x4xf32>):
// CHECK: %[[W:.*]] = ml_program.global_load_const @w
// CHECK: tensor.empty(%[[ROWS]]) : tensor<?x6xf32>
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[X]], %[[W]]
// CHECK: cfb.yield %[[P]] : tensor<?x6xf32>
// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[A:.*]]: !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<6xf32>>
// CHECK: %[[R:.*]] = cfb.record @f_0(%[[A]])
// CHECK: return %[[R]]
func.func @f(%x: tensor<4xf32>) -> tensor<6xf32> {
  %p_w = ml_program.global_load_const @w : tensor<4x6xf32>
  %r = cfb.block "f"(%x, %p_w) : (tensor<4xf32>, tensor<4x6xf32>) -> (tensor<6xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_p_w: tensor<4x6xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %out = linalg.vecmat ins(%b_x, %b_p_w : tensor<4xf32>, tensor<4x6xf32>) outs(%z : tensor<6xf32>) -> tensor<6xf32>
    cfb.yield %out : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
