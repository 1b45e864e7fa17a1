// In a cluster whose 16 blocks all have other columns a thread has a second row, where there are more than 32: for each four terms it
// loads those of the weights once. Where 8 blocks have the columns, 8 others may have other rows.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

// CHECK: \22clustered\22:{\22symbol\22:\22all$0_clustered\22,{{.*}}\22tile_rows\22:64,\22column_blocks\22:16,
// CHECK: \22clustered\22:{\22symbol\22:\22half$0_clustered\22,{{.*}}\22tile_rows\22:32,\22column_blocks\22:8,
// CHECK: gpu.func @all$0_clustered(
// CHECK: llvm.store {{.*}} : i32, !llvm.ptr<3>
// CHECK: %[[MORE:[a-z0-9]*]] = arith.cmpi slt
// CHECK-NEXT: scf.if %[[MORE]] {
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: %[[FIRST:[a-z0-9]*]] = llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[SECOND:[a-z0-9]*]] = llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: %[[WEIGHTS:[a-z0-9]*]] = llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: math.fma
// CHECK-NEXT: math.fma
// CHECK: } else {
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: math.fma
// CHECK: gpu.return
// CHECK: gpu.func @half$0_clustered(
// CHECK-NOT: } else {
// CHECK: gpu.return
gpu.module @cohort_gpu {
  ragged.kernel @all {
    %x = ragged.operand row : memref<?x64xf32>
    %r = ragged.result : memref<?x64xf32>
    %w = ragged.param @w : memref<64x64xf32>
    ragged.tiles over [64] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [8, 16, 3, 8192] clustered [4, 16, 3, 16384] {
      %zero = arith.constant 0.0 : f32
      %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
      ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
    }
  }
  ragged.kernel @half {
    %x = ragged.operand row : memref<?x64xf32>
    %r = ragged.result : memref<?x32xf32>
    %w = ragged.param @u : memref<64x32xf32>
    ragged.tiles over [32] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [8, 16, 3, 12288] clustered [4, 16, 3, 24576] {
      %zero = arith.constant 0.0 : f32
      %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 32 + d1) k 64 columns 32 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x32xf32>, f32 -> f32
      ragged.store %s, %r (d0) -> (d0) : memref<?x32xf32>
    }
  }
}
