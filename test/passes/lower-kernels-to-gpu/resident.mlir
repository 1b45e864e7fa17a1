// A tile whose weights stay has one more function, which flushes run: it loads its part of the columns unless the first word of
// its shared memory says that it is there, behind a barrier, as others may not have looked. Rows come
// through a ring of three buffers, of both products of the sum one after another: two steps are on their way while one is
// multiplied, which begins when all but the last group are there. The grid has the columns along the first dim.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

// CHECK: \22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:2,\22shared_bytes\22:9360}
// CHECK: gpu.func @k$0_large(
// CHECK: llvm.mlir.global internal @k$0_resident$shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<9360 x i8>
// CHECK: gpu.func @k$0_resident({{.*}} kernel attributes {cfb.only_in_flush
// CHECK: %[[SHARED:[a-z0-9]*]] = llvm.mlir.addressof @k$0_resident$shared
// CHECK: gpu.block_id
// CHECK: gpu.block_id
// CHECK: %[[HELD:[a-z0-9]*]] = llvm.load %[[SHARED]] {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: %[[OTHER:[a-z0-9]*]] = arith.cmpi ne
// CHECK-NEXT: scf.if %[[OTHER]] {
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache
// CHECK: scf.for
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache
// CHECK: scf.if
// CHECK: llvm.store %{{[a-z0-9]*}}, %[[SHARED]] {alignment = 4 : i64} : i32
// The first two steps.
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: scf.if
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache
// CHECK: nvvm.cp.async.commit.group
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: math.fma
// CHECK: scf.yield
// CHECK-NOT: gpu.barrier
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.return
gpu.module @cohort_gpu {
  ragged.kernel @k {
    %x = ragged.operand row : memref<?x32xf32>
    %y = ragged.operand row : memref<?x16xf32>
    %r = ragged.result : memref<?x8xf32>
    %u = ragged.param @u : memref<32x16xf32>
    %w = ragged.param @w : memref<16x16xf32>
    ragged.tiles over [8] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3] {
      %zero = arith.constant 0.0 : f32
      %a:2 = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 16 + d1) k 32 columns 16 gates [0, 8] copies [4, 4, 4] from %zero, %zero : memref<?x32xf32>, memref<32x16xf32>, f32, f32 -> f32, f32
      %b:2 = ragged.products %y () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0, 8] copies [4, 4, 4] from %a#0, %a#1 : memref<?x16xf32>, memref<16x16xf32>, f32, f32 -> f32, f32
      %p = arith.mulf %b#0, %b#1 : f32
      ragged.store %p, %r (d0) -> (d0) : memref<?x8xf32>
    }
  }
}
