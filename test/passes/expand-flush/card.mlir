// For a card, a function that runs a block is a copy of the kernel's: arguments from the list in shared memory, the place that it
// is given, the shared memory of the flush. To arrive at a barrier of the grid is a barrier of the block, and then a count in the
// device's memory by its first thread, behind a fence; to wait is to look at that count, and then a fence and a barrier. The kernel's
// function stays. The number of the thread is added to what is zero in every list, so that what is made of it stays in the loop over
// the blocks.
// RUN: %batch-opt %s --expand-flush | %FileCheck %s

// CHECK: gpu.func @k$0(
// CHECK: llvm.mlir.addressof @k$0$shared
// CHECK: gpu.return
// CHECK: llvm.func internal @cohort_grid_arrive(%[[ARRIVED:[a-z0-9]*]]: !llvm.ptr<1>) {
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: llvm.fence syncscope("device") acq_rel
// CHECK: llvm.atomicrmw add %[[ARRIVED]], %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i32
// CHECK-NOT: gpu.barrier
// CHECK: llvm.return
// CHECK: llvm.func internal @cohort_grid_wait(%[[COUNT:[a-z0-9]*]]: !llvm.ptr<1>, %[[ALL:[a-z0-9]*]]: i64) {
// CHECK-NOT: gpu.barrier
// CHECK: scf.if
// CHECK: scf.while
// CHECK-NEXT: %[[NOW:[a-z0-9]*]] = llvm.load %[[COUNT]] atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: arith.cmpi slt, %{{.*}}, %[[ALL]] : i64
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: gpu.barrier
// CHECK: llvm.return
// CHECK: llvm.func internal @k$0$block(%[[LIST:[a-z0-9]*]]: !llvm.ptr<3>, %[[X:[a-z0-9]*]]: i64, %[[Y:[a-z0-9]*]]: i64) {
// CHECK: llvm.load %[[LIST]] {alignment = 8 : i64} : !llvm.ptr<3> -> i64
// CHECK: arith.shrui
// CHECK: gpu.thread_id
// CHECK: arith.addi
// CHECK: %[[THREAD:[a-z0-9]*]] = arith.andi
// CHECK: llvm.load %[[LIST]] {alignment = 8 : i64} : !llvm.ptr<3> -> i64
// CHECK: llvm.getelementptr %[[LIST]][8]
// CHECK: %[[OUT:[a-z0-9]*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> !llvm.ptr<1>
// CHECK: arith.index_cast %[[X]] : i64 to index
// CHECK: arith.index_cast %[[Y]] : i64 to index
// CHECK-NOT: gpu.thread_id
// CHECK: arith.index_cast %[[THREAD]] : i64 to index
// CHECK: llvm.mlir.addressof @cohort_flush$shared
// CHECK: llvm.store %{{.*}}, %[[OUT]]
// CHECK-NOT: gpu.return
// CHECK: llvm.return
// CHECK: gpu.func @cohort_flush(
// CHECK: llvm.call @k$0$block(
// CHECK: llvm.call @cohort_grid_arrive(
// CHECK: llvm.call @cohort_grid_wait(
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$0$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @k$0(%rows: i64, %out: !llvm.ptr<1>) kernel {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %thread = gpu.thread_id x
    %first = arith.addi %x, %y : index
    %place = arith.addi %first, %thread : index
    %number = arith.index_cast %place : index to i64
    %sum = arith.addi %number, %rows : i64
    %memory = llvm.mlir.addressof @k$0$shared : !llvm.ptr<3>
    llvm.store %sum, %memory : i64, !llvm.ptr<3>
    gpu.barrier
    %value = llvm.load %memory : !llvm.ptr<3> -> i64
    llvm.store %value, %out : i64, !llvm.ptr<1>
    gpu.return
  }
  func.func private @cohort_grid_arrive(!llvm.ptr<1>)
  func.func private @cohort_grid_wait(!llvm.ptr<1>, i64)
  func.func private @k$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0}
  llvm.mlir.global internal @cohort_flush$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @cohort_flush(%schedule: !llvm.ptr<1>) kernel {
    %one = arith.constant 1 : i64
    %list = llvm.mlir.addressof @cohort_flush$shared : !llvm.ptr<3>
    func.call @k$0$block(%list, %one, %one) : (!llvm.ptr<3>, i64, i64) -> ()
    func.call @cohort_grid_arrive(%schedule) : (!llvm.ptr<1>) -> ()
    func.call @cohort_grid_wait(%schedule, %one) : (!llvm.ptr<1>, i64) -> ()
    gpu.return
  }
}
