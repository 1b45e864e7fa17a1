// A product of what a product computes is a second launch. Between them is what the second one reads,
// after the pointwise work; the sums themselves are in no memory.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s
// One slot of 40 floats, in whole cache lines.
// CHECK: \22scratch_bytes_per_row\22:192,
// CHECK: gpu.func @layers$0_small
// CHECK: arith.negf
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
// CHECK: gpu.func @layers$0_large
// CHECK: gpu.func @layers$1_small
// CHECK: gpu.func @layers$1_large
// CHECK-NOT: gpu.func
gpu.module @cohort_gpu {
  ragged.kernel @layers {
    %0 = ragged.operand row : memref<?x24xf32>
    %1 = ragged.result : memref<?x24xf32>
    %2 = ragged.param @w : memref<24x40xf32>
    %3 = ragged.param @v : memref<40x24xf32>
    %4 = ragged.scratch : memref<?x40xf32>
    ragged.tiles over [40] small [2, 2, 32, 1] large [8, 2, 16, 1] from 4096 {
      %cst = arith.constant 0.000000e+00 : f32
      %5 = ragged.products %0 () -> (0) with %2 (d0, d1) -> (d0 * 40 + d1) k 24 columns 40 gates [0] copies [4, 4] from %cst : memref<?x24xf32>, memref<24x40xf32>, f32 -> f32
      %6 = arith.negf %5 : f32
      ragged.store %6, %4 (d0) -> (d0) : memref<?x40xf32>
    }
    ragged.tiles over [24] small [2, 1, 16, 1] large [8, 1, 16, 1] from 4096 {
      %cst = arith.constant 0.000000e+00 : f32
      %5 = ragged.products %4 () -> (0) with %3 (d0, d1) -> (d0 * 24 + d1) k 40 columns 24 gates [0] copies [4, 4] from %cst : memref<?x40xf32>, memref<40x24xf32>, f32 -> f32
      ragged.store %5, %1 (d0) -> (d0) : memref<?x24xf32>
    }
  }
}
