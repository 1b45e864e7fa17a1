// What runs a flush calls the functions of the kernels, as the same thread of a block that it says, with its own
// shared memory, and the runtime where a block arrives at a barrier of the grid, a barrier of its own, and where all blocks wait
// for each other.
// RUN: %batch-opt %s --lower-gpu-to-host | %FileCheck %s

// CHECK: func.func private @cohort_sim_barrier(!llvm.ptr)
// CHECK: func.func private @cohort_sim_grid_barrier(!llvm.ptr)
// CHECK: func.func @k$0(
// CHECK-NOT: cohort_grid_
// CHECK: func.func @cohort_flush(%{{[a-z0-9]*}}: !llvm.ptr, %{{[a-z0-9]*}}: i64, %{{[a-z0-9]*}}: i64, %[[THREAD:[a-z0-9]*]]: i64, %[[SHARED:[a-z0-9]*]]: !llvm.ptr, %[[CONTEXT:[a-z0-9]*]]: !llvm.ptr)
// CHECK: %[[ONE:[a-z0-9_]*]] = arith.constant 1 : i64
// CHECK: %[[TWO:[a-z0-9_]*]] = arith.constant 2 : i64
// CHECK: call @k$0(%[[SHARED]], %[[ONE]], %[[TWO]], %[[THREAD]], %[[SHARED]], %[[CONTEXT]])
// CHECK-NEXT: call @cohort_sim_barrier(%[[CONTEXT]])
// CHECK-NEXT: call @cohort_sim_grid_barrier(%[[CONTEXT]])
// CHECK-NEXT: return
gpu.module @cohort_gpu {
  gpu.func @k$0(%rows: i64) kernel {
    gpu.return
  }
  func.func private @cohort_grid_arrive(!llvm.ptr<1>)
  func.func private @cohort_grid_wait(!llvm.ptr<1>, i64)
  func.func private @k$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0}
  llvm.mlir.global internal @cohort_flush$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @cohort_flush(%schedule: !llvm.ptr<1>) kernel {
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %list = llvm.mlir.addressof @cohort_flush$shared : !llvm.ptr<3>
    func.call @k$0$block(%list, %one, %two) : (!llvm.ptr<3>, i64, i64) -> ()
    func.call @cohort_grid_arrive(%schedule) : (!llvm.ptr<1>) -> ()
    func.call @cohort_grid_wait(%schedule, %one) : (!llvm.ptr<1>, i64) -> ()
    gpu.return
  }
}
