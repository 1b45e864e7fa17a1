// Two matrices a row give a batched product; a shared left side is broadcast.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<3x4xf32>>) : tensor<3x4xf32>

// CHECK: linalg.broadcast
// CHECK: linalg.batch_matmul
func.func @f(%m: tensor<4x6xf32>) -> tensor<3x6xf32> {
  %p_w = ml_program.global_load_const @w : tensor<3x4xf32>
  %r = cfb.block "f"(%p_w, %m) : (tensor<3x4xf32>, tensor<4x6xf32>) -> (tensor<3x6xf32>) attributes {reuse = [#cfb<reuse shared>, #cfb<reuse row>]} {
  ^bb0(%b_p_w: tensor<3x4xf32>, %b_m: tensor<4x6xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3x6xf32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<3x6xf32>) -> tensor<3x6xf32>
    %out = linalg.matmul ins(%b_p_w, %b_m : tensor<3x4xf32>, tensor<4x6xf32>) outs(%z : tensor<3x6xf32>) -> tensor<3x6xf32>
    cfb.yield %out : tensor<3x6xf32>
  }
  return %r : tensor<3x6xf32>
}
