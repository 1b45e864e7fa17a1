// A shared matrix times a vector is a batched product over the broadcast matrix.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<6x4xf32>>) : tensor<6x4xf32>

// CHECK: linalg.broadcast
// CHECK: linalg.batch_matvec
func.func @f(%x: tensor<4xf32>) -> tensor<6xf32> {
  %p_w = ml_program.global_load_const @w : tensor<6x4xf32>
  %r = cfb.block "f"(%p_w, %x) : (tensor<6x4xf32>, tensor<4xf32>) -> (tensor<6xf32>) attributes {reuse = [#cfb<reuse shared>, #cfb<reuse row>]} {
  ^bb0(%b_p_w: tensor<6x4xf32>, %b_x: tensor<4xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %out = linalg.matvec ins(%b_p_w, %b_x : tensor<6x4xf32>, tensor<4xf32>) outs(%z : tensor<6xf32>) -> tensor<6xf32>
    cfb.yield %out : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
