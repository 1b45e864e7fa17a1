// A program whose only launch runs once for each instance, in one or the other of two sizes, has flushes of
// one step, so it stays as it is, with a remark; not so where a loop or another function records it,
// which may run again. Nor does one whose functions need different blocks, or all shared memory of a block, get a function for
// flushes.
// RUN: %batch-opt %s --persistence --split-input-file --verify-diagnostics | %FileCheck %s

// CHECK-LABEL: @in_the_entry
// CHECK-NOT: cohort_flush
// CHECK-LABEL: @in_a_loop
// CHECK: gpu.func @cohort_flush
// CHECK-LABEL: @in_a_function
// CHECK: gpu.func @cohort_flush
// CHECK-LABEL: @other_blocks
// CHECK-NOT: cohort_flush
// CHECK-LABEL: @all_memory
// CHECK-NOT: cohort_flush
module @in_the_entry {
  func.func @main(%x: !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>> attributes {cfb.entry} {
    %y = cfb.record @k(%x) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    return %y : !cfb.lazy<tensor<4xf32>>
  }
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x4xf32>):
    %r = arith.negf %x : tensor<?x4xf32>
    cfb.yield %r : tensor<?x4xf32>
  }
  // expected-remark @below {{each launch of a flush is one of its own: it has no other}}
  gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:0},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:0}]}]}"}} {
  }
}

// -----

module @in_a_loop {
  func.func @main(%x: !cfb.lazy<tensor<4xf32>>, %n: index) -> !cfb.lazy<tensor<4xf32>> attributes {cfb.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> !cfb.lazy<tensor<4xf32>> {
      %h = cfb.record @k(%y) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
      scf.yield %h : !cfb.lazy<tensor<4xf32>>
    }
    return %z : !cfb.lazy<tensor<4xf32>>
  }
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x4xf32>):
    %r = arith.negf %x : tensor<?x4xf32>
    cfb.yield %r : tensor<?x4xf32>
  }
  // expected-remark @below {{a flush of several steps is one launch of `cohort_flush`, which runs 2 functions}}
  gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:0},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:0}]}]}"}} {
  }
}

// -----

module @in_a_function {
  func.func private @f(%x: !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>> {
    %y = cfb.record @k(%x) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    return %y : !cfb.lazy<tensor<4xf32>>
  }
  func.func @main(%x: !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>> attributes {cfb.entry} {
    %y = func.call @f(%x) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    %z = func.call @f(%y) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    return %z : !cfb.lazy<tensor<4xf32>>
  }
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x4xf32>):
    %r = arith.negf %x : tensor<?x4xf32>
    cfb.yield %r : tensor<?x4xf32>
  }
  // expected-remark @below {{a flush of several steps is one launch of `cohort_flush`, which runs 2 functions}}
  gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:0},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:0}]}]}"}} {
  }
}

// -----

module @other_blocks {
  // expected-remark @below {{each launch of a flush is one of its own: functions have blocks of different sizes}}
  gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:0},{\22symbol\22:\22k$0_large\22,\22from_rows\22:8,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:8,\22column_blocks\22:1,\22shared_bytes\22:0}]}]}", j = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22j$0\22,\22from_rows\22:0,\22threads\22:64,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:0}]}]}"}} {
  }
}

// -----

module @all_memory {
  // expected-remark @below {{each launch of a flush is one of its own: a function needs all shared memory of a block}}
  gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22from_rows\22:0,\22threads\22:128,\22tile_rows_per_row\22:1,\22tile_rows\22:1,\22column_blocks\22:1,\22shared_bytes\22:101376}]}]}"}} {
  }
}
