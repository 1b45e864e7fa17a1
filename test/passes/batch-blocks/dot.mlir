// An inner product is a product of the elements and a sum over them.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: %[[P:.*]] = arith.mulf %{{.*}} : tensor<?x4xf32>
// CHECK: linalg.reduce ins(%[[P]] : tensor<?x4xf32>) outs(%{{.*}} : tensor<?xf32>) dimensions = [1]
func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<f32> {
  %r = cfb.block "f"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_y: tensor<4xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<f32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %out = linalg.dot ins(%b_x, %b_y : tensor<4xf32>, tensor<4xf32>) outs(%z : tensor<f32>) -> tensor<f32>
    cfb.yield %out : tensor<f32>
  }
  return %r : tensor<f32>
}
