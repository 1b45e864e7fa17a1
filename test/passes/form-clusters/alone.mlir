// What is alone at all levels has its weights at the beginning of shared memory where there is no room behind what others
// need. Sizes that somebody wrote are obeyed, and a module in which no weights stay is as it was.
// RUN: %batch-opt %s --form-clusters --split-input-file | %FileCheck %s

// CHECK: ragged.kernel @given {
// CHECK: from 512 resident [4, 16, 3] clustered [8, 16, 2] {
module {
  gpu.module @cohort_gpu {
    ragged.kernel @given {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x64xf32>
      %w = ragged.param @w : memref<64x64xf32>
      ragged.tiles over [64] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3] clustered [8, 16, 2] {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
  }
}

// -----

// CHECK: ragged.kernel @none {
// CHECK: from 512 {
module {
  gpu.module @cohort_gpu {
    ragged.kernel @none {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x64xf32>
      %w = ragged.param @w : memref<64x64xf32>
      ragged.tiles over [64] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
  }
}

// -----

// CHECK: ragged.kernel @large {
// CHECK: from 512 resident [4, 64, 3] clustered [16, 64, 3] {
module {
  gpu.module @cohort_gpu {
    ragged.kernel @large {
      %x = ragged.operand row : memref<?x832xf32>
      %r = ragged.result : memref<?x256xf32>
      %w = ragged.param @w : memref<832x1024xf32>
      ragged.tiles over [256] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 64, 3] {
        %zero = arith.constant 0.0 : f32
        %s:4 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 1024 + d1) k 832 columns 1024 gates [0, 256, 512, 768] copies [4, 4, 4, 4, 4] from %zero, %zero, %zero, %zero : memref<?x832xf32>, memref<832x1024xf32>, f32, f32, f32, f32 -> f32, f32, f32, f32
        ragged.store %s#0, %r (d0) -> (d0) : memref<?x256xf32>
      }
    }
  }
}
