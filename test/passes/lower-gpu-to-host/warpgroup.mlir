// Products of a warpgroup are the runtime's too: each thread leaves its sums in its own memory, and addresses of shared memory
// count from the block's first byte. They are done at once, so fences and waits are nothing. A named barrier has the number
// of its threads.
// RUN: %batch-opt %s --lower-gpu-to-host | %FileCheck %s

// CHECK-DAG: func.func private @cohort_sim_multiply_group(!llvm.ptr, i64, i64, i64, !llvm.ptr)
// CHECK: func.func @k(
// CHECK-SAME: %[[SHARED:[^:]*]]: !llvm.ptr, %[[CONTEXT:[^:]*]]: !llvm.ptr)
// CHECK: %[[REGISTERS:.*]] = llvm.alloca %{{.*}} x i32
// CHECK: %[[AT:.*]] = llvm.ptrtoint %[[SHARED]]
// CHECK: %[[BASE:.*]] = llvm.ptrtoint %[[SHARED]]
// CHECK: %[[OFFSET:.*]] = arith.subi %[[AT]], %[[BASE]] : i64
// CHECK-COUNT-4: llvm.store %{{.*}} : f32, !llvm.ptr
// CHECK: %[[COLUMNS:.*]] = arith.constant 8 : i64
// CHECK: call @cohort_sim_multiply_group(%[[CONTEXT]], %[[COLUMNS]], %[[OFFSET]], %[[OFFSET]], %[[REGISTERS]])
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK-NOT: nvvm.
// CHECK-NOT: inline_asm
// CHECK: func.func @waits(
// CHECK: %[[BLOCKS:.*]] = call @cohort_sim_grid_dim(%[[OTHER:.*]]) : (!llvm.ptr) -> i64
// CHECK: arith.index_cast %[[BLOCKS]] : i64 to index
// CHECK: %[[NUMBER:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: %[[THREADS:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: call @cohort_sim_named_barrier(%[[OTHER]], %[[NUMBER]], %[[THREADS]]) : (!llvm.ptr, i64, i64) -> ()
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<2048 x i8>
  gpu.func @k(%out: !llvm.ptr<1>) kernel {
    %memory = llvm.mlir.addressof @k$shared : !llvm.ptr<3>
    %at = llvm.ptrtoint %memory : !llvm.ptr<3> to i64
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    %none = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.fence.aligned
    %begun = nvvm.wgmma.mma_async %at, %at, %none, <m = 64, n = 8, k = 16>, D [<f32>, <one>], A [<bf16>, <one>, <row>], B [<bf16>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    %a = llvm.extractvalue %begun[0] : !llvm.struct<(f32, f32, f32, f32)>
    %b = llvm.extractvalue %begun[1] : !llvm.struct<(f32, f32, f32, f32)>
    %c = llvm.extractvalue %begun[2] : !llvm.struct<(f32, f32, f32, f32)>
    %d = llvm.extractvalue %begun[3] : !llvm.struct<(f32, f32, f32, f32)>
    %done = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3" %a, %b, %c, %d : (f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %x = llvm.extractvalue %done[0] : !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %x, %out : f32, !llvm.ptr<1>
    gpu.return
  }
  gpu.func @waits(%out: !llvm.ptr<1>) kernel {
    %blocks = gpu.grid_dim x
    %number = arith.index_cast %blocks : index to i32
    %threads = arith.constant 128 : i32
    nvvm.barrier id = %number number_of_threads = %threads
    llvm.store %number, %out : i32, !llvm.ptr<1>
    gpu.return
  }
}
