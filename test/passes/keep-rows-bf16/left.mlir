// What stays as it is: rows whose number of elements is not a multiple of eight, those that are folded into or are on the chip, a
// tile of which one left side cannot be kept, and tiles of another precision.
// RUN: %batch-opt %s --keep-rows-bf16 | %FileCheck %s
// CHECK-NOT: scratch bf16
// CHECK-NOT: copies [8
module {
  gpu.module @cohort_gpu {
    ragged.kernel @odd {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x64xf32>
      %h = ragged.scratch : memref<?x60xf32>
      %u = ragged.param @u : memref<64x60xf32>
      %v = ragged.param @v : memref<60x64xf32>
      ragged.tiles over [60] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 60 + d1) k 64 columns 60 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x60xf32>, f32 -> f32
        ragged.store %1, %h (d0) -> (d0) : memref<?x60xf32>
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 60 columns 64 gates [0] copies [4, 4] from %0 : memref<?x60xf32>, memref<60x64xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
    ragged.kernel @folded {
      %x = ragged.operand row : memref<?x64x8xf32>
      %r = ragged.result : memref<?x64xf32>
      %h = ragged.scratch : memref<?x64xf32>
      %v = ragged.param @v : memref<64x64xf32>
      ragged.blocks of 2 tile 1 {
        ragged.fold over [64, 8] folding [1] into %h (d0) -> (d0) vectors 4 : memref<?x64xf32> from {
          %0 = arith.constant 0.0 : f32
          ragged.yield %0 : f32
        } by {
        ^bb0(%sum: f32):
          %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x64x8xf32>
          %1 = arith.addf %sum, %0 : f32
          ragged.yield %1 : f32
        }
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
    ragged.kernel @mixed {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x64xf32>
      %h = ragged.scratch : memref<?x64xf32>
      %v = ragged.param @v : memref<64x64xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [64] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
          %1 = math.tanh %0 : f32
          ragged.store %1, %h (d0) -> (d0) : memref<?x64xf32>
        }
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        %2 = ragged.products %x () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %1 : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        ragged.store %2, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
    ragged.kernel @tf32 {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x64xf32>
      %h = ragged.scratch : memref<?x64xf32>
      %v = ragged.param @v : memref<64x64xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [64] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
        }
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded tf32 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
  }
}
