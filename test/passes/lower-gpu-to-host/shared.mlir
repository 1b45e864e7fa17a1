// Where a function's shared memory does not begin with that of the flush, it is given a place behind.
// RUN: %batch-opt %s --lower-gpu-to-host | %FileCheck %s

// CHECK: func.func @cohort_flush(%{{[a-z0-9]*}}: !llvm.ptr, %{{[a-z0-9]*}}: i64, %{{[a-z0-9]*}}: i64, %[[THREAD:[a-z0-9]*]]: i64, %[[SHARED:[a-z0-9]*]]: !llvm.ptr, %[[CONTEXT:[a-z0-9]*]]: !llvm.ptr)
// CHECK: %[[OWN:[a-z0-9]*]] = llvm.getelementptr %[[SHARED]][32]
// CHECK: call @k$0(%{{[a-z0-9_]*}}, %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}}, %[[THREAD]], %[[OWN]], %[[CONTEXT]])
gpu.module @cohort_gpu {
  gpu.func @k$0(%rows: i64) kernel {
    gpu.return
  }
  func.func private @k$0$block(!llvm.ptr<1>, i64, i64) attributes {cfb.block_of = @k$0, cfb.shared_from = 32 : i64}
  llvm.mlir.global internal @cohort_flush$shared() {addr_space = 3 : i32} : !llvm.array<48 x i8>
  gpu.func @cohort_flush(%schedule: !llvm.ptr<1>) kernel {
    %one = arith.constant 1 : i64
    func.call @k$0$block(%schedule, %one, %one) : (!llvm.ptr<1>, i64, i64) -> ()
    gpu.return
  }
}
