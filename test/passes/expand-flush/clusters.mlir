// Each half of a cluster's barrier is an instruction of all threads, beside a barrier of the block, and what runs one block has its
// shared memory in that of the function for clusters.
// RUN: %batch-opt %s --expand-flush | %FileCheck %s

// CHECK: llvm.func internal @cohort_cluster_arrive() {
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: llvm.return
// CHECK: llvm.func internal @cohort_cluster_wait() {
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: llvm.return
// CHECK: llvm.func internal @k$0$cluster(
// CHECK: llvm.mlir.addressof @cohort_flush_clusters$shared : !llvm.ptr<3>
// CHECK: gpu.func @cohort_flush_clusters(
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$0$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @k$0(%rows: i64) kernel attributes {cfb.only_in_flush} {
    %memory = llvm.mlir.addressof @k$0$shared : !llvm.ptr<3>
    llvm.store %rows, %memory : i64, !llvm.ptr<3>
    gpu.return
  }
  func.func private @cohort_cluster_arrive()
  func.func private @cohort_cluster_wait()
  func.func private @k$0$cluster(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0, cfb.in_cluster}
  llvm.mlir.global internal @cohort_flush_clusters$shared() {addr_space = 3 : i32} : !llvm.array<48 x i8>
  gpu.func @cohort_flush_clusters(%schedule: !llvm.ptr<1>) kernel {
    %one = arith.constant 1 : i64
    %list = llvm.mlir.addressof @cohort_flush_clusters$shared : !llvm.ptr<3>
    func.call @k$0$cluster(%list, %one, %one) : (!llvm.ptr<3>, i64, i64) -> ()
    func.call @cohort_cluster_arrive() : () -> ()
    func.call @cohort_cluster_wait() : () -> ()
    gpu.return
  }
}
