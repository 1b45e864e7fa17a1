// Slices of one product that meet in pointwise arithmetic are sums over one iteration space: one
// launch in two sizes of tile, no scratch, and what is stored is the result alone. The rows are
// gathered through their index while they are copied, by 16 bytes, like the weight's columns; the
// copies of the next step go on while the last one is multiplied. The sums then go through shared memory,
// so that each thread computes and stores four neighbouring columns of a row; the large tile, whose
// threads have two columns, writes them there by two.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s
// CHECK: gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {gates =
// CHECK-SAME: \22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,
// CHECK-SAME: \22symbol\22:\22gates$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:2
// CHECK-SAME: \22symbol\22:\22gates$0_large\22
// CHECK-NOT: gates$1
// CHECK: llvm.mlir.global internal @gates$0_small$shared() {addr_space = 3 : i32
// CHECK: gpu.func @gates$0_small(%[[ROWS:.*]]: i64, %[[BASE:[^:]*]]: !llvm.ptr<1>, %[[INDEX:[^:]*]]: !llvm.ptr<1>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache {{.*}}cg : !llvm.ptr<3>, !llvm.ptr<1>
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: math.fma
// CHECK: gpu.barrier
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-4: arith.mulf
// CHECK: %[[FOUR:.*]] = vector.from_elements
// CHECK: llvm.store %[[FOUR]], %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: gpu.return
// CHECK: gpu.func @gates$0_large(
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
gpu.module @cohort_gpu {
  ragged.kernel @gates {
    %0 = ragged.operand row : memref<?x64xf32>
    %1 = ragged.result : memref<?x64xf32>
    %2 = ragged.param @b : memref<128xf32>
    %3 = ragged.param @w : memref<64x128xf32>
    ragged.tiles over [64] small [2, 1, 32, 1] large [8, 2, 16, 1] from 4096 {
      %4 = ragged.load %2 (d0) -> (d0) : memref<128xf32>
      %5 = ragged.load %2 (d0) -> (d0 + 64) : memref<128xf32>
      %6:2 = ragged.products %0 () -> (0) with %3 (d0, d1) -> (d0 * 128 + d1) k 64 columns 128 gates [0, 64] copies [4, 4, 4] from %4, %5 : memref<?x64xf32>, memref<64x128xf32>, f32, f32 -> f32, f32
      %7 = arith.mulf %6#0, %6#1 : f32
      ragged.store %7, %1 (d0) -> (d0) : memref<?x64xf32>
    }
  }
}
