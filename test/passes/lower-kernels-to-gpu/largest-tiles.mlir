// The largest tiles have more warps than others, and more shared memory than a function may declare: whoever launches them
// gives it. A flush that is one launch leaves them out. The epilogue redistributes sums in several passes, as all of them would take more than
// the buffers.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s
// RUN: %batch-opt %s --lower-kernels-to-gpu --persistence | %FileCheck %s --check-prefix=FLUSH

// CHECK: \22symbol\22:\22wide$0_large\22,\22from_rows\22:100,\22threads\22:128
// CHECK-SAME: \22symbol\22:\22wide$0_largest\22,\22from_rows\22:1000,\22threads\22:256,\22tile_rows_per_row\22:1,\22tile_rows\22:128,\22column_blocks\22:2,\22shared_bytes\22:82944
// CHECK: gpu.func @wide$0_large(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 2
// CHECK: llvm.mlir.global external @wide$0_largest$shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK: gpu.func @wide$0_largest(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1
// Copies of three steps are on their way.
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.mma.sync
// FLUSH: \22functions\22:[\22wide$0_small\22,\22wide$0_large\22,\22wide$1_small\22,\22wide$1_large\22]
module {
  func.func @main() attributes {cfb.entry} {
    return
  }
  gpu.module @cohort_gpu {
    ragged.kernel @wide {
      %x = ragged.operand row : memref<?x64xf32>
      %h = ragged.scratch : memref<?x512xf32>
      %r = ragged.result : memref<?x64xf32>
      %u = ragged.param @u : memref<64x512xf32>
      %v = ragged.param @v : memref<512x64xf32>
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %h (d0) -> (d0) : memref<?x512xf32>
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 512 columns 64 gates [0] copies [4, 4] from %0 : memref<?x512xf32>, memref<512x64xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x64xf32>
      }
    }
  }
}
