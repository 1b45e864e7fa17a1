// A person may write another tile than the planner, and it is obeyed: the rows and columns of a thread, how many terms are in
// shared memory at once, from how many rows on the large size is used, and what a copy has.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

// CHECK: \22symbol\22:\22gates$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:16,\22column_blocks\22:1
// CHECK-SAME: \22symbol\22:\22gates$0_large\22,\22from_rows\22:100,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:16,\22column_blocks\22:2
// CHECK: gpu.func @gates$0_small(
// CHECK-NOT: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: gpu.func @gates$0_large(
gpu.module @cohort_gpu {
  ragged.kernel @gates {
    %0 = ragged.operand row : memref<?x64xf32>
    %1 = ragged.result : memref<?x64xf32>
    %2 = ragged.param @b : memref<128xf32>
    %3 = ragged.param @w : memref<64x128xf32>
    ragged.tiles over [64] small [4, 2, 16, 1] large [4, 1, 8, 1] from 100 {
      %4 = ragged.load %2 (d0) -> (d0) : memref<128xf32>
      %5 = ragged.load %2 (d0) -> (d0 + 64) : memref<128xf32>
      %6:2 = ragged.products %0 () -> (0) with %3 (d0, d1) -> (d0 * 128 + d1) k 64 columns 128 gates [0, 64] copies [1, 4, 4] from %4, %5 : memref<?x64xf32>, memref<64x128xf32>, f32, f32 -> f32, f32
      %7 = arith.mulf %6#0, %6#1 : f32
      ragged.store %7, %1 (d0) -> (d0) : memref<?x64xf32>
    }
  }
}
