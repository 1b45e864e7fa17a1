// A matrix a row times a shared matrix is one dense product over the rows of all matrices.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<4x6xf32>>) : tensor<4x6xf32>

// CHECK: %[[F:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2]]
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[F]],
// CHECK: tensor.expand_shape %[[P]] {{\[}}[0, 1], [2]]
func.func @f(%x: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %p_w = ml_program.global_load_const @w : tensor<4x6xf32>
  %r = cfb.block "f"(%x, %p_w) : (tensor<3x4xf32>, tensor<4x6xf32>) -> (tensor<3x6xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%b_x: tensor<3x4xf32>, %b_p_w: tensor<4x6xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3x6xf32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<3x6xf32>) -> tensor<3x6xf32>
    %out = linalg.matmul ins(%b_x, %b_p_w : tensor<3x4xf32>, tensor<4x6xf32>) outs(%z : tensor<3x6xf32>) -> tensor<3x6xf32>
    cfb.yield %out : tensor<3x6xf32>
  }
  return %r : tensor<3x6xf32>
}
