// A function for warpgroups is beside those for all cards: its weights are rounded column after column, too, both sides are copied to
// swizzled rows of shared memory, and products of a step are begun before the next step is copied, and waited for behind it. What
// a thread copied it makes visible to them before the barrier.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s
// RUN: %batch-opt %s --lower-kernels-to-gpu --persistence | %FileCheck %s --check-prefix=FLUSH

// CHECK: \22by_columns\22:true
// CHECK-SAME: \22grouped\22:{\22symbol\22:\22one$1_warpgroups\22,\22from_rows\22:12288,\22threads\22:384,\22tile_rows_per_row\22:1,\22tile_rows\22:192,\22column_blocks\22:2,\22shared_bytes\22:229376}
// CHECK: gpu.func @one$0(
// CHECK: nvvm.convert.f32x2.to.bf16x2
// CHECK: gpu.func @one$1_large(
// CHECK: nvvm.mma.sync
// CHECK: llvm.mlir.global external @one$1_warpgroups$shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: gpu.func @one$1_warpgroups(
// CHECK-SAME: cfb.by_warpgroups
// CHECK: arith.xori
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: gpu.barrier
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: llvm.ptrtoint
// CHECK-COUNT-4: nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %{{.*}}, <m = 64, n = 256, k = 16>
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;"
// Where weights are held, all threads of a block copy the terms of its columns first. Behind that a warpgroup waits for its own 128
// threads, and at a barrier that is chosen, as is the number of its threads, where halves change places. A grid needs no more blocks than the device has at once.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s --check-prefix=HELD
// HELD: \22grouped\22:{\22symbol\22:\22two$1_warpgroups\22,\22from_rows\22:8192,\22threads\22:512,\22tile_rows_per_row\22:1,\22tile_rows\22:256,\22column_blocks\22:4,\22shared_bytes\22:212992,\22grid_stride\22:true}
// HELD: gpu.func @two$1_warpgroups(
// HELD: scf.for
// HELD: nvvm.cp.async.shared.global
// HELD: nvvm.cp.async.wait.group 0
// HELD-NEXT: nvvm.fence.proxy
// HELD-NEXT: gpu.barrier
// HELD: gpu.grid_dim
// HELD: nvvm.cp.async.shared.global
// HELD: scf.for
// HELD: arith.select
// HELD: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// HELD: scf.for
// HELD: nvvm.cp.async.wait.group 2
// HELD: nvvm.fence.proxy
// HELD: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// HELD: nvvm.wgmma.fence.aligned
// HELD-COUNT-4: nvvm.wgmma.mma_async %{{.*}}, %{{.*}}, %{{.*}}, <m = 64, n = 128, k = 16>
// HELD: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;"
// HELD: arith.select
// HELD: nvvm.barrier id =
// HELD: nvvm.barrier id =
// HELD-NOT: gpu.barrier
// HELD: gpu.return
// FLUSH: \22functions\22:[\22one$0\22,\22one$1_small\22,\22one$1_large\22,\22two$0\22,\22two$1_small\22,\22two$1_large\22]
module {
  func.func @main() attributes {cfb.entry} {
    return
  }
  gpu.module @cohort_gpu {
    ragged.kernel @one {
      %x = ragged.operand row : memref<?x320xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x320xf32>
      %w = ragged.param @w : memref<320x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [320] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x320xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x320xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 warpgroups [3, 256, 4] from 12288 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 320 columns 512 gates [0] copies [8, 4] from %0 : memref<?x320xf32>, memref<320x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
    ragged.kernel @two {
      %x = ragged.operand row : memref<?x320xf32>
      %r = ragged.result : memref<?x512xf32>
      %h = ragged.scratch bf16 : memref<?x320xf32>
      %w = ragged.param @w : memref<320x512xf32>
      ragged.blocks of 2 tile 1 {
        ragged.nest over [320] by 4 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x320xf32>
          ragged.store %0, %h (d0) -> (d0) : memref<?x320xf32>
        }
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 2, 16, 2] from 100 warpgroups [4, 128, 4] from 8192 held rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 512 + d1) k 320 columns 512 gates [0] copies [8, 4] from %0 : memref<?x320xf32>, memref<320x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
    }
  }
}
