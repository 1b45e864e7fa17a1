// Where weights stay in clusters, a second function runs flushes there: behind the steps of the grid each cluster has its own, with
// barriers of its own. Whether all blocks share a step, and which barrier is behind it, follows from its number. What runs one block
// is declared once more, as its shared memory is in another place.
// RUN: %batch-opt %s --persistence | %FileCheck %s

// CHECK: cfb.gpu_flush = "{\22symbol\22:\22cohort_flush\22,\22threads\22:128,\22shared_bytes\22:3168,\22argument_bytes\22:16,\22functions\22:[\22k$0_resident\22,\22k$0_large\22],\22clusters\22:{\22symbol\22:\22cohort_flush_clusters\22,\22shared_bytes\22:103520,\22functions\22:[\22k$0_clustered\22,\22k$0_large\22]}}"
// CHECK: gpu.func @cohort_flush(
// CHECK-NOT: cohort_cluster
// CHECK: gpu.return
// CHECK: func.func private @cohort_cluster_arrive()
// CHECK-NEXT: func.func private @cohort_cluster_wait()
// CHECK-NEXT: func.func private @k$0_clustered$cluster(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0_clustered, cfb.in_cluster}
// CHECK-NEXT: func.func private @k$0_large$cluster(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0_large, cfb.in_cluster, cfb.shared_from = 102400 : i64}
// CHECK: gpu.func @cohort_flush_clusters(%[[SCHEDULE:[a-z0-9]*]]: !llvm.ptr<1>) kernel
// CHECK: scf.for %[[STEP:[a-z0-9]*]] =
// CHECK: %[[OF_GRID:[a-z0-9_]*]] = arith.cmpi sge, %{{.*}}, %[[STEP]]
// CHECK-NEXT: scf.if %[[OF_GRID]] {
// CHECK: func.call @cohort_grid_wait(%[[SCHEDULE]],
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @cohort_cluster_wait()
// CHECK: func.call @k$0_clustered$cluster(
// CHECK: func.call @k$0_large$cluster(
// CHECK: func.call @cohort_grid_arrive(%[[SCHEDULE]])
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @cohort_cluster_arrive()
// CHECK: gpu.return
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:1024}],\22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:4,\22shared_bytes\22:2048},\22clustered\22:{\22symbol\22:\22k$0_clustered\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:16,\22shared_bytes\22:102400}}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_resident(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.only_in_flush} {
    gpu.return
  }
  gpu.func @k$0_clustered(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.only_in_flush} {
    gpu.return
  }
}
