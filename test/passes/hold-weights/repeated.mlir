// What a recursion or a loop multiplies with at each level stays in shared memory; what a leaf makes of a looked-up row, or
// the entry of a result, is multiplied once, and does not. Of the sizes that there is room for in both kernels together,
// the one with the most columns is taken, and each begins behind the one before.
// RUN: %batch-opt %s --hold-weights | %FileCheck %s
// RUN: diff <(%batch-opt %s --hold-weights) <(%batch-opt %s --hold-weights --hold-weights)

// CHECK: ragged.kernel @step {
// CHECK: ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 resident [8, 16, 4, 12288] {
// CHECK: ragged.kernel @turn {
// CHECK: from 512 resident [8, 16, 4, 13584] {
// CHECK: ragged.kernel @leaf {
// CHECK: from 512 {
// CHECK: ragged.kernel @last {
// CHECK: from 512 {
module {
  ml_program.global private @emb(dense<0.0> : tensor<4x16xf32>) : tensor<4x16xf32>
  cfb.kernel @step {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  cfb.kernel @turn {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  cfb.kernel @leaf {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  cfb.kernel @last {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  func.func private @tree(%w: i32, %is_leaf: i1) -> !cfb.lazy<tensor<16xf32>> {
    %r = scf.if %is_leaf -> (!cfb.lazy<tensor<16xf32>>) {
      %row = cfb.param_row @emb[%w] : !cfb.lazy<tensor<16xf32>>
      %leaf = cfb.record @leaf(%row) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
      scf.yield %leaf : !cfb.lazy<tensor<16xf32>>
    } else {
      %child = func.call @tree(%w, %is_leaf) : (i32, i1) -> !cfb.lazy<tensor<16xf32>>
      %node = cfb.record @step(%child) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
      scf.yield %node : !cfb.lazy<tensor<16xf32>>
    }
    return %r : !cfb.lazy<tensor<16xf32>>
  }
  func.func @main(%w: i32, %is_leaf: i1, %n: index) -> !cfb.lazy<tensor<16xf32>> attributes {cfb.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = func.call @tree(%w, %is_leaf) : (i32, i1) -> !cfb.lazy<tensor<16xf32>>
    %z = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (!cfb.lazy<tensor<16xf32>>) {
      %h = cfb.record @turn(%y) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
      scf.yield %h : !cfb.lazy<tensor<16xf32>>
    }
    %last = cfb.record @last(%z) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
    return %last : !cfb.lazy<tensor<16xf32>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @step {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wstep : memref<16x32xf32>
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s:2 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 32 + d1) k 16 columns 32 gates [0, 16] copies [4, 4, 4] from %zero, %zero : memref<?x16xf32>, memref<16x32xf32>, f32, f32 -> f32, f32
        ragged.store %s#0, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
    ragged.kernel @turn {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wturn : memref<16x16xf32>
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
    ragged.kernel @leaf {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wleaf : memref<16x16xf32>
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
    ragged.kernel @last {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wlast : memref<16x16xf32>
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
  }
}
