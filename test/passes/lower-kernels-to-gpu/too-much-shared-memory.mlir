// How much shared memory a block needs follows from what the text asks for. More than there is, is an error at the launch.
// RUN: %batch-opt %s --lower-kernels-to-gpu --split-input-file --verify-diagnostics

gpu.module @cohort_gpu {
  ragged.kernel @scratch {
    %x = ragged.operand row : memref<?x64xf32>
    %r = ragged.result : memref<?x64xf32>
    %s = ragged.scratch on_chip : memref<?x64xf32>
    // expected-error @below {{a block needs 76800 bytes of shared memory, and has 49152}}
    ragged.blocks of 300 tile 1 {
      ragged.nest over [64] by 4 {
        %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
        ragged.store %0, %s (d0) -> (d0) : memref<?x64xf32>
      }
      ragged.nest over [64] by 4 {
        %0 = ragged.load %s (d0) -> (d0) : memref<?x64xf32>
        ragged.store %0, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
  }
}

// -----

gpu.module @cohort_gpu {
  ragged.kernel @tiles {
    %x = ragged.operand row : memref<?x64xf32>
    %r = ragged.result : memref<?x128xf32>
    %w = ragged.param @w : memref<64x128xf32>
    // expected-error @below {{a block needs 98304 bytes of shared memory, and has 49152}}
    ragged.tiles over [128] small [16, 4, 64, 1] large [16, 4, 64, 1] from 1 {
      %0 = arith.constant 0.0 : f32
      %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 128 + d1) k 64 columns 128 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x128xf32>, f32 -> f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x128xf32>
    }
  }
}

// -----

gpu.module @cohort_gpu {
  ragged.kernel @reversed {
    %x = ragged.operand row : memref<?x64xf32>
    %r = ragged.result : memref<?x64xf32>
    %w = ragged.param @w : memref<64x64xf32>
    ragged.tiles over [64] small [2, 2, 32, 4] large [4, 8, 32, 2] from 8192 rounded tf32 weights {
      %0 = arith.constant 0.0 : f32
      // expected-error @below {{expected weights to be rounded in the order of their parameter}}
      %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * -64 + d1 + 4032) k 64 columns 64 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x64xf32>
    }
  }
}

// -----

gpu.module @cohort_gpu {
  ragged.kernel @largest {
    %x = ragged.operand row : memref<?x64xf32>
    %r = ragged.result : memref<?x512xf32>
    %w = ragged.param @w : memref<64x512xf32>
    // expected-error @below {{a block needs 115712 bytes of shared memory, and has 101376}}
    ragged.tiles over [512] small [2, 2, 32, 4] large [4, 8, 32, 2] from 1 largest [8, 16, 16, 4, 8, 4] from 1 rounded tf32 weights {
      %0 = arith.constant 0.0 : f32
      %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
    }
  }
}
