// Two sums of which weights stay have a panel each, behind one another, and share a ring: rows of the second come behind those of
// the first, and while these are multiplied. Of a kernel with another launch it is the launch's function.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

// The ring is at the beginning, the word and two panels of 4 columns with 16 terms, 4 more each, are where it is said.
// CHECK: \22resident\22:{\22symbol\22:\22k$0_resident\22,{{.*}}\22column_blocks\22:2,\22shared_bytes\22:8848}
// CHECK: \22symbol\22:\22k$1\22
// CHECK: gpu.func @k$0_resident({{.*}} attributes {cfb.held_at = 8192 : i64, cfb.only_in_flush
// Both panels are loaded behind one look.
// CHECK: llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK: scf.if
// CHECK: gpu.barrier
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache
// CHECK: llvm.store
// The first sum.
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: math.fma
// CHECK: scf.yield
// CHECK-NOT: gpu.barrier
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: math.fma
// CHECK: scf.yield
// CHECK-NOT: gpu.barrier
// CHECK: arith.mulf
// CHECK: gpu.return
gpu.module @cohort_gpu {
  ragged.kernel @k {
    %x = ragged.operand row : memref<?x16xf32>
    %r = ragged.result : memref<?x8xf32>
    %s = ragged.result : memref<?x8xf32>
    %u = ragged.param @u : memref<16x8xf32>
    %w = ragged.param @w : memref<16x8xf32>
    ragged.tiles over [8] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3, 8192] {
      %zero = arith.constant 0.0 : f32
      %a = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 8 + d1) k 16 columns 8 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x8xf32>, f32 -> f32
      %b = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 8 + d1) k 16 columns 8 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x8xf32>, f32 -> f32
      %p = arith.mulf %a, %b : f32
      ragged.store %p, %r (d0) -> (d0) : memref<?x8xf32>
    }
    ragged.blocks of 2 tile 1 {
      ragged.nest over [8] by 4 {
        %0 = ragged.load %r (d0) -> (d0) : memref<?x8xf32>
        ragged.store %0, %s (d0) -> (d0) : memref<?x8xf32>
      }
    }
  }
}
