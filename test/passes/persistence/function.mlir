// One function more runs all others: in each step the blocks of all launches in turn, each as a block of the
// function of its number; every step but the first waits for all blocks, and a barrier of the block is behind every block's work, as
// shared memory is used again. What comes next is looked up before: the first block of a step between the arrival at the barrier and
// the wait, another one before the last barrier of the block before.
// RUN: %batch-opt %s --persistence | %FileCheck %s
// RUN: %batch-opt %s --persistence --persistence | %FileCheck %s

// CHECK: cfb.gpu_flush = "{\22symbol\22:\22cohort_flush\22,\22threads\22:128,\22shared_bytes\22:608,\22argument_bytes\22:16,\22functions\22:[\22k$0_small\22,\22k$0_large\22,\22k$1\22]}"
// CHECK: gpu.func @k$0_small(
// CHECK: func.func private @cohort_grid_arrive(!llvm.ptr<1>)
// CHECK-NEXT: func.func private @cohort_grid_wait(!llvm.ptr<1>, i64)
// CHECK-NEXT: func.func private @k$0_small$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0_small}
// CHECK-NEXT: func.func private @k$0_large$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0_large}
// CHECK-NEXT: func.func private @k$1$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$1}
// CHECK-NEXT: llvm.mlir.global internal @cohort_flush$shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<608 x i8>
// CHECK-NEXT: gpu.func @cohort_flush(%[[SCHEDULE:[a-z0-9]*]]: !llvm.ptr<1>) kernel
// CHECK: scf.while
// CHECK: gpu.barrier
// CHECK: scf.for %[[STEP:[a-z0-9]*]] =
// CHECK: %[[LATER:[a-z0-9_]*]] = arith.cmpi sgt, %[[STEP]],
// CHECK-NEXT: scf.if %[[LATER]] {
// CHECK-NEXT: arith.muli %[[STEP]],
// CHECK-NEXT: func.call @cohort_grid_wait(%[[SCHEDULE]],
// CHECK-NEXT: }
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.index_switch
// CHECK-NEXT: case 0 {
// CHECK-NEXT: func.call @k$0_small$block(
// CHECK: case 1 {
// CHECK-NEXT: func.call @k$0_large$block(
// CHECK: case 2 {
// CHECK-NEXT: func.call @k$1$block(
// CHECK: default {
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK: scf.if
// CHECK: scf.while
// CHECK: gpu.barrier
// CHECK-NEXT: scf.yield
// CHECK: scf.if
// CHECK-NEXT: func.call @cohort_grid_arrive(%[[SCHEDULE]])
// CHECK: scf.while
// CHECK: gpu.return
// CHECK-NOT: @cohort_flush
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:0}]},{\22functions\22:[{\22symbol\22:\22k$1\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:0}]}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$1(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
}
