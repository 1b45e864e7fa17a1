// A body of more operations than LLVM writes out unasked, where it is called, is marked so that it does. Others are as
// they are: marked, they would be written out before they are optimised.
// RUN: awk '{ print } /llvm.store/ { for (i = 0; i < 3000; i++) print }' %s | %batch-opt --expand-flush | %FileCheck %s --check-prefix=LONG
// RUN: %batch-opt %s --expand-flush | %FileCheck %s

// LONG: llvm.func internal @cohort_grid_wait(
// LONG-NOT: always_inline
// LONG: llvm.func internal @k$0$block(%{{.*}}) attributes {always_inline} {
// LONG-NOT: always_inline
// LONG: gpu.func @cohort_flush(

// CHECK: llvm.func internal @k$0$block(
// CHECK-NOT: always_inline
// CHECK: gpu.func @cohort_flush(
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$0$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @k$0(%rows: i64, %out: !llvm.ptr<1>) kernel {
    llvm.store %rows, %out : i64, !llvm.ptr<1>
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
