// A function of the GPU becomes one that runs a thread: its arguments from a list, its place in the
// grid and its shared memory as they are given, barriers as calls, one address space.
// RUN: %batch-opt %s --lower-gpu-to-host | %FileCheck %s

// CHECK-NOT: gpu.
// CHECK: func.func private @cohort_sim_barrier(!llvm.ptr)
// CHECK: func.func @k(%[[ARGUMENTS:.*]]: !llvm.ptr, %[[X:.*]]: i64, %[[Y:.*]]: i64, %[[THREAD:.*]]: i64, %[[SHARED:.*]]: !llvm.ptr, %[[CONTEXT:.*]]: !llvm.ptr)
// CHECK: %[[ROWS:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: llvm.getelementptr %[[ARGUMENTS]][8]
// CHECK: %[[OUT:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK: %[[T:.*]] = arith.index_cast %[[THREAD]] : i64 to index
// CHECK: llvm.store %{{.*}}, %[[SHARED]] : i64, !llvm.ptr
// CHECK: call @cohort_sim_barrier(%[[CONTEXT]])
// CHECK: %[[V:.*]] = llvm.load %[[SHARED]] : !llvm.ptr -> i64
// CHECK: llvm.store %[[V]], %[[OUT]] : i64, !llvm.ptr
// CHECK: return
// CHECK-NOT: gpu.
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @k(%rows: i64, %out: !llvm.ptr<1>) kernel {
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i64
    %sum = arith.addi %number, %rows : i64
    %memory = llvm.mlir.addressof @k$shared : !llvm.ptr<3>
    llvm.store %sum, %memory : i64, !llvm.ptr<3>
    gpu.barrier
    %value = llvm.load %memory : !llvm.ptr<3> -> i64
    llvm.store %value, %out : i64, !llvm.ptr<1>
    gpu.return
  }
}
