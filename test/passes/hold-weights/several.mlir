// Of a kernel with several launches each of its products stays: those of two sums, and those of one; what else it does has
// shared memory behind theirs. Where there is no room for all, those with the fewest weights are left out. A list whose
// elements are of an earlier turn makes a kernel repeat, too.
// RUN: %batch-opt %s --hold-weights --split-input-file --verify-diagnostics | %FileCheck %s
// RUN: diff <(%batch-opt %s --hold-weights --split-input-file 2>/dev/null) <(%batch-opt %s --hold-weights --hold-weights --split-input-file 2>/dev/null)

// CHECK-LABEL: module @launches
// CHECK: ragged.kernel @k
// CHECK: ragged.tiles over [16] {{.*}} resident [8, 16, 4, 8192] {
// CHECK: ragged.tiles over [16] {{.*}} resident [8, 16, 4, 9488] {
// CHECK: ragged.blocks of 2 tile 1 {
module @launches {
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  func.func private @main(%xs: !cfb.array<!cfb.lazy<tensor<16xf32>>>, %numbers: !cfb.array<i32>) -> !cfb.array<!cfb.lazy<tensor<16xf32>>> attributes {cfb.entry} {
    %all = cfb.fold %numbers init(%xs) : (!cfb.array<i32>, !cfb.array<!cfb.lazy<tensor<16xf32>>>) -> !cfb.array<!cfb.lazy<tensor<16xf32>>> {
    ^bb0(%before: !cfb.array<!cfb.lazy<tensor<16xf32>>>, %number: i32):
      %x = cfb.array_get %before[%number] : !cfb.array<!cfb.lazy<tensor<16xf32>>> -> (!cfb.lazy<tensor<16xf32>>)
      %y = cfb.record @k(%x) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
      %after = cfb.array_push %before, (%y) : !cfb.array<!cfb.lazy<tensor<16xf32>>>, (!cfb.lazy<tensor<16xf32>>)
      cfb.yield %after : !cfb.array<!cfb.lazy<tensor<16xf32>>>
    }
    return %all : !cfb.array<!cfb.lazy<tensor<16xf32>>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @k {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @w : memref<16x16xf32>
      %u = ragged.param @u : memref<16x16xf32>
      %t = ragged.scratch : memref<?x16xf32>
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %a = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        %b = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        %c = arith.mulf %a, %b : f32
        ragged.store %c, %t (d0) -> (d0) : memref<?x16xf32>
      }
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %t () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
      ragged.blocks of 2 tile 1 {
        ragged.nest over [16] by 4 {
          %0 = ragged.load %r (d0) -> (d0) : memref<?x16xf32>
          ragged.store %0, %r (d0) -> (d0) : memref<?x16xf32>
        }
      }
    }
  }
}

// -----

// CHECK-LABEL: module @room
// CHECK: ragged.tiles over [48] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
// CHECK: ragged.tiles over [16] {{.*}} resident [4, 64, 3, 26112] {
module @room {
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x1024xf32>):
    cfb.yield %x : tensor<?x1024xf32>
  }
  func.func private @f_k(%x: !cfb.lazy<tensor<1024xf32>>) -> !cfb.lazy<tensor<1024xf32>> {
    %y = cfb.record @k(%x) : (!cfb.lazy<tensor<1024xf32>>) -> !cfb.lazy<tensor<1024xf32>>
    return %y : !cfb.lazy<tensor<1024xf32>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @k {
      %x = ragged.operand row : memref<?x1024xf32>
      %r = ragged.result : memref<?x48xf32>
      %q = ragged.result : memref<?x16xf32>
      %w = ragged.param @w : memref<1024x48xf32>
      %u = ragged.param @u : memref<1024x64xf32>
      // expected-remark @below {{its weights are read anew at each level on a GPU: a block has 79872 bytes of shared memory for weights, which do not hold them}}
      ragged.tiles over [48] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %a = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 48 + d1) k 1024 columns 48 gates [0] copies [4, 4] from %zero : memref<?x1024xf32>, memref<1024x48xf32>, f32 -> f32
        ragged.store %a, %r (d0) -> (d0) : memref<?x48xf32>
      }
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s:4 = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 64 + d1) k 1024 columns 64 gates [0, 16, 32, 48] copies [4, 4, 4, 4, 4] from %zero, %zero, %zero, %zero : memref<?x1024xf32>, memref<1024x64xf32>, f32, f32, f32, f32 -> f32, f32, f32, f32
        ragged.store %s#0, %q (d0) -> (d0) : memref<?x16xf32>
      }
    }
  }
}
