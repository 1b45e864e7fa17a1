// The length of a computed tensor is that of what it is computed from, so that no tensor code waits
// for it, whatever operations lie between.
// RUN: %batch-opt %s --resolve-dims | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: math.tanh
// CHECK-NOT: tensor.dim
// CHECK: cfb.array_range
// CHECK: return %{{.*}}, %[[N]]
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %c: i32) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = math.tanh %x : tensor<?x8xf32>
  %n = tensor.dim %t, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %p = linalg.matmul ins(%t, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = tensor.dim %p, %c0 : tensor<?x8xf32>
  %s = tensor.extract_slice %p[0, 2] [%m, 1] [1, 1] : tensor<?x8xf32> to tensor<?x1xf32>
  %r = tensor.collapse_shape %s [[0, 1]] : tensor<?x1xf32> into tensor<?xf32>
  %a = cfb.array_range %c : !cfb.array<i32>
  %l = tensor.dim %r, %c0 : tensor<?xf32>
  return %r, %l : tensor<?xf32>, index
}
