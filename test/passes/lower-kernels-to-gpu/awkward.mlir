// Sizes that are not a multiple of four have no 16 aligned bytes: elements are copied one by one, and
// what lies behind the last k is filled with zeros.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s
// CHECK: gpu.func @odd$0_small
// CHECK-NOT: , 16, cache
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache {{.*}}ca, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK-NOT: , 16, cache
gpu.module @cohort_gpu {
  ragged.kernel @odd {
    %0 = ragged.operand row : memref<?x61xf32>
    %1 = ragged.result : memref<?x29xf32>
    %2 = ragged.param @w : memref<61x29xf32>
    ragged.tiles over [29] small [2, 1, 8, 1] large [8, 1, 8, 1] from 4096 {
      %cst = arith.constant 0.000000e+00 : f32
      %3 = ragged.products %0 () -> (0) with %2 (d0, d1) -> (d0 * 29 + d1) k 61 columns 29 gates [0] copies [1, 1] from %cst : memref<?x61xf32>, memref<61x29xf32>, f32 -> f32
      ragged.store %3, %1 (d0) -> (d0) : memref<?x29xf32>
    }
  }
}
