// What has a largest size and none for warpgroups has a remark that says why; other precisions have none.
// RUN: %batch-opt %s --form-warpgroups --split-input-file --verify-diagnostics | %FileCheck %s
// CHECK-NOT: warpgroups [
module {
  gpu.module @cohort_gpu {
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
      // expected-remark@+1 {{no warpgroups multiply this: its rows are not kept in bf16}}
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
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
      // expected-remark@+1 {{no warpgroups multiply this: its weights are computed}}
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [8, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
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
      // expected-remark@+1 {{no warpgroups multiply this: its number of terms is not a multiple of 64}}
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
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
      // expected-remark@+1 {{no warpgroups multiply this: it has fewer columns than a block}}
      ragged.tiles over [120] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 120 + d1) k 64 columns 120 gates [0] copies [8, 4] from %0 : memref<?x64xf32>, memref<64x120xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x120xf32>
      }
    }
    ragged.kernel @tf32 {
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
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded tf32 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
  }
}
