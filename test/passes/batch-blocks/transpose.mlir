// A transposition leaves the batch dim first.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: linalg.transpose ins(%{{.*}} : tensor<?x3x4xf32>) outs(%{{.*}} : tensor<?x4x3xf32>) permutation = [0, 2, 1]
func.func @f(%x: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %r = cfb.block "f"(%x) : (tensor<3x4xf32>) -> (tensor<4x3xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%b_x: tensor<3x4xf32>):
    %e = tensor.empty() : tensor<4x3xf32>
    %out = linalg.transpose ins(%b_x : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
    cfb.yield %out : tensor<4x3xf32>
  }
  return %r : tensor<4x3xf32>
}
