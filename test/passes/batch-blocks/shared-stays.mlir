// What depends on parameters alone is not batched; only its use is.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK: %[[E:.*]] = math.exp %{{.*}} : tensor<4xf32>
// CHECK: linalg.broadcast ins(%[[E]]
// CHECK: arith.mulf
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p_b = ml_program.global_load_const @b : tensor<4xf32>
  %r = cfb.block "f"(%x, %p_b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_p_b: tensor<4xf32>):
    %s = math.exp %b_p_b : tensor<4xf32>
    %out = arith.mulf %b_x, %s : tensor<4xf32>
    cfb.yield %out : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
