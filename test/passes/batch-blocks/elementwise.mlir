// Elementwise operations keep their form over the batch dim; a shared operand is broadcast.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK: %[[B:.*]] = linalg.broadcast ins(%{{.*}} : tensor<4xf32>) outs(%{{.*}} : tensor<?x4xf32>) dimensions = [0]
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %[[B]] : tensor<?x4xf32>
// CHECK: math.tanh %[[S]] : tensor<?x4xf32>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p_b = ml_program.global_load_const @b : tensor<4xf32>
  %r = cfb.block "f"(%x, %p_b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_p_b: tensor<4xf32>):
    %s = arith.addf %b_x, %b_p_b : tensor<4xf32>
    %out = math.tanh %s : tensor<4xf32>
    cfb.yield %out : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
