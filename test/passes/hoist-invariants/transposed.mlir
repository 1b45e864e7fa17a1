// What a product in a loop reads transposed is turned once, before the loop; a transposition that no
// product reads stays.
// RUN: %batch-opt %s --hoist-invariants --canonicalize | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>, %[[K:.*]]: tensor<?x4xf32>,
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[K]]
// CHECK: cfb.fold
// CHECK-NOT: linalg.transpose ins(%[[K]]
// CHECK: linalg.matmul ins(%{{.*}}, %[[T]]
// CHECK: linalg.transpose
func.func @main(%x: tensor<3x4xf32>, %k: tensor<?x4xf32>, %steps: !cfb.array<i32>) -> tensor<3x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %k, %c0 : tensor<?x4xf32>
  %zero = arith.constant 0.0 : f32
  %r = cfb.fold %steps init(%x) : (!cfb.array<i32>, tensor<3x4xf32>) -> tensor<3x4xf32> {
  ^bb0(%h: tensor<3x4xf32>, %i: i32):
    %e = tensor.empty(%n) : tensor<4x?xf32>
    %t = linalg.transpose ins(%k : tensor<?x4xf32>) outs(%e : tensor<4x?xf32>) permutation = [1, 0]
    %f = tensor.empty(%n) : tensor<3x?xf32>
    %z = linalg.fill ins(%zero : f32) outs(%f : tensor<3x?xf32>) -> tensor<3x?xf32>
    %p = linalg.matmul ins(%h, %t : tensor<3x4xf32>, tensor<4x?xf32>) outs(%z : tensor<3x?xf32>) -> tensor<3x?xf32>
    %g = tensor.empty() : tensor<3x4xf32>
    %y = linalg.fill ins(%zero : f32) outs(%g : tensor<3x4xf32>) -> tensor<3x4xf32>
    %q = linalg.matmul ins(%p, %k : tensor<3x?xf32>, tensor<?x4xf32>) outs(%y : tensor<3x4xf32>) -> tensor<3x4xf32>
    %u = tensor.empty() : tensor<4x3xf32>
    %v = linalg.transpose ins(%q : tensor<3x4xf32>) outs(%u : tensor<4x3xf32>) permutation = [1, 0]
    %w = math.tanh %v : tensor<4x3xf32>
    %s = linalg.transpose ins(%w : tensor<4x3xf32>) outs(%g : tensor<3x4xf32>) permutation = [1, 0]
    cfb.yield %s : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}
