// Rows of a value of differing length that three blocks of columns or more read are rounded by a launch of their own, before the
// others. Those that fewer read are not, nor are rows that are looked up.
// RUN: %batch-opt %s --keep-rows-bf16 | %FileCheck %s

// CHECK-LABEL: ragged.kernel @many
// CHECK: %[[X:.*]] = ragged.operand expanded
// CHECK: %[[K:.*]] = ragged.scratch bf16 : memref<?x64xf32>
// CHECK-NEXT: ragged.blocks of 16 tile 1 {
// CHECK-NEXT: ragged.nest over [64] by 4 {
// CHECK-NEXT: %[[V:.*]] = ragged.load %[[X]] (d0) -> (d0)
// CHECK-NEXT: ragged.store %[[V]], %[[K]] (d0) -> (d0)
// CHECK: ragged.products %[[K]] {{.*}} copies [8, 4]
// CHECK-LABEL: ragged.kernel @few
// CHECK-NOT: bf16 :
// CHECK-LABEL: ragged.kernel @looked_up
// CHECK-NOT: bf16 :
module {
  gpu.module @cohort_gpu {
    ragged.kernel @many attributes {rows = [@n], lengths = [@n]} {
      %n = ragged.operand length : memref<?xi32>
      %x = ragged.operand expanded : memref<?x64xf32>
      %r = ragged.result : memref<?x768xf32>
      %w = ragged.param @w : memref<64x768xf32>
      ragged.tiles over [768] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 768 + d1) k 64 columns 768 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x768xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x768xf32>
      }
    }
    ragged.kernel @few attributes {rows = [@n], lengths = [@n]} {
      %n = ragged.operand length : memref<?xi32>
      %x = ragged.operand expanded : memref<?x64xf32>
      %r = ragged.result : memref<?x512xf32>
      %w = ragged.param @w : memref<64x512xf32>
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @looked_up {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x768xf32>
      %w = ragged.param @w : memref<64x768xf32>
      ragged.tiles over [768] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 768 + d1) k 64 columns 768 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x768xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x768xf32>
      }
    }
  }
}
