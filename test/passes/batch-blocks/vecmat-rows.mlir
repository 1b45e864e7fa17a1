// A matrix that differs by instance gives a batched product.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x4xf32>, %[[M:.*]]: tensor<?x4x6xf32>):
// CHECK: linalg.batch_vecmat ins(%[[X]], %[[M]]
func.func @f(%x: tensor<4xf32>, %m: tensor<4x6xf32>) -> tensor<6xf32> {
  %r = cfb.block "f"(%x, %m) : (tensor<4xf32>, tensor<4x6xf32>) -> (tensor<6xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_m: tensor<4x6xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %out = linalg.vecmat ins(%b_x, %b_m : tensor<4xf32>, tensor<4x6xf32>) outs(%z : tensor<6xf32>) -> tensor<6xf32>
    cfb.yield %out : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
