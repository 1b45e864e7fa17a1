// What a GPU does beside a thread is the runtime's: copies that end when they are waited for, roundings
// as the instructions make them, what the lanes of a warp exchange, and its products, whose registers each thread leaves in its
// own memory.
// RUN: %batch-opt %s --lower-gpu-to-host | %FileCheck %s

// CHECK-NOT: cohort_sim_barrier
// CHECK-DAG: func.func private @cohort_sim_copy(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64)
// CHECK-DAG: func.func private @cohort_sim_multiply(!llvm.ptr, i64, !llvm.ptr)
// CHECK: func.func @k(
// CHECK-SAME: %[[CONTEXT:[^:]*]]: !llvm.ptr)
// CHECK: %[[REGISTERS:.*]] = llvm.alloca
// CHECK: call @cohort_sim_copy(%[[CONTEXT]],
// CHECK: call @cohort_sim_commit(%[[CONTEXT]])
// CHECK: call @cohort_sim_wait(%[[CONTEXT]],
// CHECK: %[[A:.*]] = call @cohort_sim_to_tf32(%{{.*}}) : (f32) -> i32
// CHECK: call @cohort_sim_to_bf16_pair(
// CHECK: %[[LANES:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: call @cohort_sim_shuffle(%[[CONTEXT]], %{{.*}}, %[[LANES]]) : (!llvm.ptr, f32, i64) -> f32
// CHECK: llvm.store %[[A]], %{{.*}} : i32, !llvm.ptr
// CHECK: call @cohort_sim_multiply(%[[CONTEXT]], %{{.*}}, %[[REGISTERS]])
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK: llvm.insertvalue
// CHECK-NOT: nvvm.
gpu.module @cohort_gpu {
  llvm.mlir.global internal @k$shared() {addr_space = 3 : i32} : !llvm.array<16 x i8>
  gpu.func @k(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) kernel {
    %to = llvm.mlir.addressof @k$shared : !llvm.ptr<3>
    %none = arith.constant 0 : i32
    nvvm.cp.async.shared.global %to, %in, 16, cache = cg, %none : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %f = llvm.load %to : !llvm.ptr<3> -> f32
    %a = nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rna>}
    %pair = nvvm.convert.f32x2.to.bf16x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
    llvm.store %pair, %out : vector<2xbf16>, !llvm.ptr<1>
    %lanes = arith.constant 2 : i32
    %width = arith.constant 32 : i32
    %other, %is_there = gpu.shuffle xor %f, %lanes, %width : f32
    llvm.store %other, %out : f32, !llvm.ptr<1>
    %d = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%f, %f, %f, %f] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<tf32>, multiplicandBPtxType = #nvvm.mma_type<tf32>, shape = #nvvm.shape<m = 16, n = 8, k = 8>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %x = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %x, %out : f32, !llvm.ptr<1>
    gpu.return
  }
}
