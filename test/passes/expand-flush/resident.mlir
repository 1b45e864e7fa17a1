// A function that is run in flushes only is gone when its block is written out, and shared memory begins where the
// declaration says.
// RUN: %batch-opt %s --expand-flush | %FileCheck %s

// CHECK-NOT: gpu.func @k$0(
// CHECK: llvm.func internal @k$0$block(
// CHECK: %[[FLUSH:[a-z0-9]*]] = llvm.mlir.addressof @cohort_flush$shared : !llvm.ptr<3>
// CHECK-NEXT: %[[OWN:[a-z0-9]*]] = llvm.getelementptr %[[FLUSH]][32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK-NEXT: llvm.store %{{.*}}, %[[OWN]]
// CHECK: gpu.func @cohort_flush(
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$0$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @k$0(%rows: i64) kernel attributes {cfb.only_in_flush} {
    %memory = llvm.mlir.addressof @k$0$shared : !llvm.ptr<3>
    llvm.store %rows, %memory : i64, !llvm.ptr<3>
    gpu.return
  }
  func.func private @k$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0, cfb.shared_from = 32 : i64}
  llvm.mlir.global internal @cohort_flush$shared() {addr_space = 3 : i32} : !llvm.array<48 x i8>
  gpu.func @cohort_flush(%schedule: !llvm.ptr<1>) kernel {
    %one = arith.constant 1 : i64
    %list = llvm.mlir.addressof @cohort_flush$shared : !llvm.ptr<3>
    func.call @k$0$block(%list, %one, %one) : (!llvm.ptr<3>, i64, i64) -> ()
    gpu.return
  }
}
