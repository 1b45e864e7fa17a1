// `--emit=ptx` gives the code of a GPU as text, for the architecture that was asked for: asynchronous
// copies of 16 bytes to shared memory, loads and stores of 16 bytes, barriers, multiply-adds in the order of the program or, in the
// precision that was asked for, products of a warp; nothing in local memory, and no function of a library.
// RUN: %batch-opt %s --emit=ptx --gpu-arch=sm_90 | %FileCheck %s
// RUN: %batch-opt %s --emit=ptx | %FileCheck --check-prefix=OLDEST %s
// RUN: %batch-opt %s --emit=ptx --precision=tf32 | %FileCheck --check-prefix=TF32 %s
// RUN: %batch-opt %s --emit=ptx --precision=bf16 | %FileCheck --check-prefix=BF16 %s
// RUN: %batch-opt %s --emit=ptx --gpu-arch=sm_35 > %t 2>&1; test $? -eq 2
// RUN: %FileCheck --check-prefix=UNKNOWN --input-file %t %s
// RUN: COHORT_PTXAS=/nowhere/ptxas %batch-opt %s --emit=cubin > %t.missing 2>&1; test $? -eq 2
// RUN: %FileCheck --check-prefix=MISSING --input-file %t.missing %s

// OLDEST: .target sm_80
// UNKNOWN: error: unknown GPU architecture `sm_35`; it is `sm_80`, `sm_90` or a later one
// MISSING: error: /nowhere/ptxas could not be run

// TF32: .visible .entry gates$0_small(
// TF32-NOT: .local
// TF32: cp.async.cg.shared.global
// TF32: ld.shared.v2.b32
// TF32: cvt.rna.tf32.f32
// TF32: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// TF32: st.shared.v2.b32
// TF32: st.global.v4.b32
// BF16: cvt.rn.bf16x2.f32
// BF16: ld.shared.b32
// BF16: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32

// CHECK: .target sm_90
// CHECK: .visible .entry gates$0_small(
// CHECK: .maxntid 128
// CHECK: .shared .align 16 .b8 gates$0_small$shared
// CHECK-NOT: .local
// CHECK-DAG: cp.async.cg.shared.global {{.*}}, 16
// CHECK-DAG: cp.async.commit_group
// CHECK-DAG: cp.async.wait_group
// CHECK-DAG: bar.sync
// CHECK-DAG: ld.shared
// CHECK-DAG: fma.rn.f32
// CHECK-DAG: mul.rn.f32
// CHECK-DAG: st.global.v4.b32
// CHECK: .visible .entry gates$0_large(
// CHECK-NOT: .local
ml_program.global private @w(#ml_program.extern<tensor<64x128xf32>>) : tensor<64x128xf32>

cfb.kernel @gates {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %w = ml_program.global_load_const @w : tensor<64x128xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x128xf32>) outs(%z : tensor<?x128xf32>) -> tensor<?x128xf32>
  %i = tensor.extract_slice %p[0, 0] [%rows, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %o = tensor.extract_slice %p[0, 64] [%rows, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %t = math.tanh %i : tensor<?x64xf32>
  %h = arith.mulf %t, %o : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}

// The polynomial of a sine computes in f64.
// CHECK: .visible .entry waves$0(
// CHECK: cvt.rni.f64.f64
// CHECK: fma.rn.f64
// CHECK-NOT: call
cfb.kernel @waves {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  %s = math.sin %x : tensor<?x3xf32>
  cfb.yield %s : tensor<?x3xf32>
}

// CHECK: .visible .entry blend$0(
// CHECK: ld.global.v4.b32
// CHECK: ld.global.v4.b32
// CHECK-NOT: st.global.b32
// CHECK: st.global.v4.b32
cfb.kernel @blend {
^bb0(%rows: index, %x: tensor<?x96xf32>, %y: tensor<?x96xf32>):
  %s = arith.mulf %x, %y : tensor<?x96xf32>
  cfb.yield %s : tensor<?x96xf32>
}
