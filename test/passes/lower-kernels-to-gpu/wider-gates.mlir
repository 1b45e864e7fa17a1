// Chains of one tile use shared memory one after another. The first one has two steps, so that the first
// of its two buffers is free at its end; but the second chain has two gates, so that its first buffer is
// as wide as both of them, and other threads may still read the second one: a barrier comes before its
// first copies. Behind the second chain there is one again, as the sums take the place of all buffers.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

ml_program.global private @u(#ml_program.extern<tensor<16x13xf32>>) : tensor<16x13xf32>
ml_program.global private @w(#ml_program.extern<tensor<16x26xf32>>) : tensor<16x26xf32>

// CHECK: gpu.func @wider$0_small(
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: math.fma
// CHECK: scf.yield
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: gpu.barrier
// CHECK-NOT: scf.for
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: gpu.func @wider$0_large(
cfb.kernel @wider {
^bb0(%rows: index, %x: tensor<?x16xf32>):
  %u = ml_program.global_load_const @u : tensor<16x13xf32>
  %w = ml_program.global_load_const @w : tensor<16x26xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x13xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x13xf32>) -> tensor<?x13xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x16xf32>, tensor<16x13xf32>) outs(%z : tensor<?x13xf32>) -> tensor<?x13xf32>
  %e1 = tensor.empty(%rows) : tensor<?x26xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x26xf32>) -> tensor<?x26xf32>
  %q = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x26xf32>) outs(%z1 : tensor<?x26xf32>) -> tensor<?x26xf32>
  %i = tensor.extract_slice %q[0, 0] [%rows, 13] [1, 1] : tensor<?x26xf32> to tensor<?x13xf32>
  %o = tensor.extract_slice %q[0, 13] [%rows, 13] [1, 1] : tensor<?x26xf32> to tensor<?x13xf32>
  %m = arith.maximumf %i, %o : tensor<?x13xf32>
  %h = arith.addf %p, %m : tensor<?x13xf32>
  cfb.yield %h : tensor<?x13xf32>
}
