// A cluster's 16 blocks have all columns of each launch whose weights stay, and each block as few as that takes, the same number
// in all of them: 128 columns ask for 8. Weights begin one behind another, in the order in which they do without clusters. What
// does not stay is as it was.
// RUN: %batch-opt %s --form-clusters | %FileCheck %s
// RUN: diff <(%batch-opt %s --form-clusters) <(%batch-opt %s --form-clusters --form-clusters)

// CHECK: ragged.kernel @wide {
// CHECK: from 512 resident [4, 16, 3, 24576] clustered [8, 64, 4, 39184] {
// CHECK: ragged.kernel @narrow {
// CHECK: from 512 resident [4, 16, 3, 20480] clustered [8, 64, 4, 34816] {
// CHECK: ragged.kernel @once {
// CHECK: from 512 {
module {
  gpu.module @cohort_gpu {
    ragged.kernel @wide {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x128xf32>
      %w = ragged.param @w : memref<64x128xf32>
      ragged.tiles over [128] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3, 24576] {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 128 + d1) k 64 columns 128 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x128xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x128xf32>
      }
    }
    ragged.kernel @narrow {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x32xf32>
      %w = ragged.param @v : memref<64x64xf32>
      ragged.tiles over [32] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3, 20480] {
        %zero = arith.constant 0.0 : f32
        %s:2 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0, 32] copies [4, 4, 4] from %zero, %zero : memref<?x64xf32>, memref<64x64xf32>, f32, f32 -> f32, f32
        ragged.store %s#0, %r (d0) -> (d0) : memref<?x32xf32>
      }
    }
    ragged.kernel @once {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x32xf32>
      %w = ragged.param @v : memref<64x64xf32>
      ragged.tiles over [32] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x32xf32>
      }
    }
  }
}
