// A concatenation that is a result of the kernel lies in memory anyway: its product reads it whole.
// RUN: %batch-opt %s --accumulate-products --canonicalize | %FileCheck %s
// RUN: %batch-opt %s --accumulate-products --plan-kernels | %FileCheck %s --check-prefix=LOOPS

ml_program.global private @w(#ml_program.extern<tensor<8x4xf32>>) : tensor<8x4xf32>

// CHECK: %[[C:.*]] = tensor.concat
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[C]], %{{.*}} : tensor<?x8xf32>, tensor<8x4xf32>)
// CHECK-NOT: linalg.matmul
// CHECK: cfb.yield %[[C]], %[[P]]

// Both parts are written where the result has them, and nowhere else.
// LOOPS: %[[C:.*]] = ragged.result : memref<?x8xf32>
// LOOPS: ragged.store %{{.*}}, %[[C]] (d0) -> (d0) : memref<?x8xf32>
// LOOPS: ragged.store %{{.*}}, %[[C]] (d0) -> (d0 + 4) : memref<?x8xf32>
// LOOPS: ragged.product %[[C]] (d0) -> (0) rows 1 k 8 columns 4
// LOOPS-NOT: ragged.product
cfb.kernel @joined {
^bb0(%rows: index, %x: tensor<?x4xf32>, %y: tensor<?x4xf32>):
  %w = ml_program.global_load_const @w : tensor<8x4xf32>
  %s = math.tanh %x : tensor<?x4xf32>
  %t = math.tanh %y : tensor<?x4xf32>
  %c = tensor.concat dim(1) %s, %t : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = linalg.matmul ins(%c, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%z : tensor<?x4xf32>) -> tensor<?x4xf32>
  cfb.yield %c, %p : tensor<?x8xf32>, tensor<?x4xf32>
}
