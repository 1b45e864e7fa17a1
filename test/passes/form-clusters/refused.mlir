// Where 16 blocks do not hold all weights that stay, or not all columns of a launch, a remark says so.
// RUN: %batch-opt %s --form-clusters --split-input-file --verify-diagnostics | %FileCheck %s
// CHECK-NOT: clustered
module {
  gpu.module @cohort_gpu {
    ragged.kernel @heavy {
      %x = ragged.operand row : memref<?x1024xf32>
      %r = ragged.result : memref<?x256xf32>
      %w = ragged.param @w : memref<1024x1024xf32>
      // expected-remark@+1 {{all blocks of a GPU wait for each other behind each level: a cluster of 16 blocks, of 32 columns and 231424 bytes for weights at most, does not hold all that stay}}
      ragged.tiles over [256] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 64, 3] {
        %zero = arith.constant 0.0 : f32
        %s:4 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 1024 + d1) k 1024 columns 1024 gates [0, 256, 512, 768] copies [4, 4, 4, 4, 4] from %zero, %zero, %zero, %zero : memref<?x1024xf32>, memref<1024x1024xf32>, f32, f32, f32, f32 -> f32, f32, f32, f32
        ragged.store %s#0, %r (d0) -> (d0) : memref<?x256xf32>
      }
    }
  }
}

// -----

module {
  gpu.module @cohort_gpu {
    ragged.kernel @wide {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x1024xf32>
      %w = ragged.param @w : memref<64x1024xf32>
      // expected-remark@+1 {{does not hold all that stay}}
      ragged.tiles over [1024] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [8, 64, 3] {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 1024 + d1) k 64 columns 1024 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x1024xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x1024xf32>
      }
    }
  }
}
