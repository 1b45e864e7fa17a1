// Tiles whose rows and weights are in bf16, and whose terms are a multiple of 64, have a size for warpgroups: four with 128 columns of
// all sums together whose weights stay in shared memory, where these have room there beside at least two buffers of rows, or three
// with 256 columns; from as many rows on as give each of 128 multiprocessors a block. Twice is as once.
// RUN: %batch-opt %s --form-warpgroups | %FileCheck %s
// RUN: diff <(%batch-opt %s --form-warpgroups) <(%batch-opt %s --form-warpgroups --form-warpgroups)

// CHECK-LABEL: ragged.kernel @one
// CHECK: from 100 warpgroups [4, 128, 4] from 8192 held rounded bf16 weights
// CHECK-LABEL: ragged.kernel @fewer_buffers
// CHECK: from 100 warpgroups [4, 128, 3] from 8192 held rounded bf16 weights
// CHECK-LABEL: ragged.kernel @many_terms
// CHECK: from 100 warpgroups [3, 256, 4] from 12288 rounded bf16 weights
// CHECK-LABEL: ragged.kernel @gates
// CHECK: from 100 warpgroups [4, 40, 4] from 5376 held rounded bf16 weights
// CHECK-LABEL: ragged.kernel @rows_in_f32
// CHECK-NOT: warpgroups
// CHECK-LABEL: ragged.kernel @other_terms
// CHECK-NOT: warpgroups
// CHECK-LABEL: ragged.kernel @few_columns
// CHECK-NOT: warpgroups
// CHECK-LABEL: ragged.kernel @computed_weights
// CHECK-NOT: warpgroups
module {
  gpu.module @cohort_gpu {
    ragged.kernel @one {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x64xf32>
      %w = ragged.param @w : memref<64x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [64] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [8, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @fewer_buffers {
      %x = ragged.operand row : memref<?x512xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x512xf32>
      %w = ragged.param @w : memref<512x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [512] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x512xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x512xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 512 columns 512 gates [0] copies [8, 4] from %0 : memref<?x512xf32>, memref<512x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @many_terms {
      %x = ragged.operand row : memref<?x1024xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x1024xf32>
      %w = ragged.param @w : memref<1024x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [1024] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x1024xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x1024xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 1024 columns 512 gates [0] copies [8, 4] from %0 : memref<?x1024xf32>, memref<1024x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @gates {
      %x = ragged.operand row : memref<?x128xf32>
      %r = ragged.result : memref<?x240xf32>
      %h = ragged.scratch bf16 : memref<?x128xf32>
      %w = ragged.param @w : memref<128x720xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [128] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x128xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x128xf32>
        }
      }
      ragged.tiles over [240] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1:3 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 720 + d1) k 128 columns 720 gates [0, 240, 480] copies [8, 4, 4, 4] from %0, %0, %0 : memref<?x128xf32>, memref<128x720xf32>, f32, f32, f32 -> f32, f32, f32
        ragged.store %1#0, %r (d0) -> (d0) : memref<?x240xf32>
      }
    }
    ragged.kernel @rows_in_f32 {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch : memref<?x64xf32>
      %w = ragged.param @w : memref<64x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [64] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @other_terms {
      %x = ragged.operand row : memref<?x80xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x80xf32>
      %w = ragged.param @w : memref<80x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [80] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x80xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x80xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 80 columns 512 gates [0] copies [8, 4] from %0 : memref<?x80xf32>, memref<80x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @few_columns {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x120xf32>
      %h = ragged.scratch bf16 : memref<?x64xf32>
      %w = ragged.param @w : memref<64x120xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [64] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
        }
      }
      ragged.tiles over [120] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 120 + d1) k 64 columns 120 gates [0] copies [8, 4] from %0 : memref<?x64xf32>, memref<64x120xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x120xf32>
      }
    }
    ragged.kernel @computed_weights {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x64xf32>
      %w = ragged.param @w : memref<64x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [64] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 rounded bf16 {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [8, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
  }
}
