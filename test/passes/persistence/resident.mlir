// For few rows a flush runs the function whose weights stay. No weights are there at its beginning. Where there is room both
// functions have memory of their own; where there is not, the other one's is behind the word that says which weights are
// there, which is zero before it runs; and where that is too much, no weights stay. A function may say where they are, behind what
// others need; if these need more, none stay either.
// RUN: %batch-opt %s --persistence --split-input-file | %FileCheck %s

// CHECK-LABEL: module @apart
// CHECK: cfb.gpu_flush = "{\22symbol\22:\22cohort_flush\22,\22threads\22:128,\22shared_bytes\22:3168,\22argument_bytes\22:16,\22functions\22:[\22k$0_resident\22,\22k$0_large\22]}"
// CHECK: func.func private @k$0_resident$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0_resident}
// CHECK-NEXT: func.func private @k$0_large$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0_large, cfb.shared_from = 2048 : i64}
// CHECK: gpu.func @cohort_flush(
// CHECK: %[[SHARED:[a-z0-9]*]] = llvm.mlir.addressof @cohort_flush$shared
// CHECK: %[[ZERO:[a-z0-9_]*]] = arith.constant 0 : i32
// CHECK-NEXT: llvm.store %[[ZERO]], %[[SHARED]]
// CHECK: scf.for
// CHECK-NOT: llvm.store %{{.*}}, %[[SHARED]] {
// CHECK: gpu.return

// CHECK-LABEL: module @shared
// CHECK: \22shared_bytes\22:90208,
// CHECK: func.func private @k$0_large$block({{.*}} cfb.shared_from = 16 : i64}
// CHECK: llvm.mlir.global external @cohort_flush$shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK: %[[SHARED:[a-z0-9]*]] = llvm.mlir.addressof @cohort_flush$shared
// CHECK: llvm.store %{{.*}}, %[[SHARED]]
// CHECK: case 0 {
// CHECK-NEXT: func.call @k$0_resident$block(
// CHECK: case 1 {
// CHECK-NEXT: arith.constant 0 : i32
// CHECK-NEXT: llvm.store %{{.*}}, %[[SHARED]]
// CHECK-NEXT: func.call @k$0_large$block(

// CHECK-LABEL: module @none
// CHECK: \22functions\22:[\22k$0_small\22,\22k$0_large\22]
// CHECK-NOT: cfb.shared_from
// CHECK-LABEL: module @placed
// CHECK: \22shared_bytes\22:2144,\22argument_bytes\22:16,\22functions\22:[\22k$0_resident\22,
// CHECK-NOT: cfb.shared_from
// CHECK: gpu.func @cohort_flush(
// CHECK: %[[SHARED:[a-z0-9]*]] = llvm.mlir.addressof @cohort_flush$shared
// CHECK: %[[WORD:[a-z0-9]*]] = llvm.getelementptr %[[SHARED]]
// CHECK: llvm.store %{{.*}}, %[[WORD]]
// CHECK: scf.for

// CHECK-LABEL: module @in_the_way
// CHECK: \22functions\22:[\22k$0_small\22,\22k$0_large\22]
module @apart {
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:1024}],\22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:4,\22shared_bytes\22:2048}}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_resident(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.only_in_flush} {
    gpu.return
  }
}
}

// -----

module @shared {
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:20480}],\22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:4,\22shared_bytes\22:90112}}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_resident(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.only_in_flush} {
    gpu.return
  }
}
}

// -----

module @none {
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:101280}],\22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:4,\22shared_bytes\22:40960}}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_resident(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.only_in_flush} {
    gpu.return
  }
}
}

// -----

module @placed {
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:1024}],\22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:4,\22shared_bytes\22:2048}}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_resident(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.held_at = 1024 : i64, cfb.only_in_flush} {
    gpu.return
  }
}
}

// -----

module @in_the_way {
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:512},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:1024}],\22resident\22:{\22symbol\22:\22k$0_resident\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:32,\22column_blocks\22:4,\22shared_bytes\22:2048}}]}"}} {
  gpu.func @k$0_small(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_large(%rows: i64, %scratch: !llvm.ptr<1>) kernel {
    gpu.return
  }
  gpu.func @k$0_resident(%rows: i64, %scratch: !llvm.ptr<1>) kernel attributes {cfb.held_at = 1008 : i64, cfb.only_in_flush} {
    gpu.return
  }
}
}
