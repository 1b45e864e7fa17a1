// Where weights cannot stay a remark says why: products that are computed on tensor cores; rows that do not come in whole
// steps; weights that a block has no room for, alone or beside others; calls of many rows each.
// RUN: %batch-opt %s --hold-weights --split-input-file --verify-diagnostics | %FileCheck %s

// CHECK-NOT: resident
module @rounded {
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  func.func private @f_k(%x: !cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>> {
    %y = cfb.record @k(%x) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
    return %y : !cfb.lazy<tensor<16xf32>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @k {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wk : memref<16x16xf32>
      // expected-remark @below {{its weights are read anew at each level on a GPU: its products are not of vectors in f32}}
      ragged.tiles over [16] small [2, 2, 16, 4] large [4, 8, 16, 2] from 512 rounded tf32 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
  }
}

// -----

module @odd {
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  func.func private @f_k(%x: !cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>> {
    %y = cfb.record @k(%x) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
    return %y : !cfb.lazy<tensor<16xf32>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @k {
      %x = ragged.operand row : memref<?x20xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wk : memref<20x16xf32>
      // expected-remark @below {{its weights are read anew at each level on a GPU: its rows have no multiple of the terms that are copied at once}}
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 20 columns 16 gates [0] copies [4, 4] from %zero : memref<?x20xf32>, memref<20x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
  }
}

// -----

module @large {
  cfb.kernel @k {
  ^bb0(%rows: index, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  func.func private @f_k(%x: !cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>> {
    %y = cfb.record @k(%x) : (!cfb.lazy<tensor<16xf32>>) -> !cfb.lazy<tensor<16xf32>>
    return %y : !cfb.lazy<tensor<16xf32>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @k {
      %x = ragged.operand row : memref<?x2048xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wk : memref<2048x64xf32>
      // expected-remark @below {{its weights are read anew at each level on a GPU: a block has 100352 bytes of shared memory for weights, which do not hold them}}
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s:4 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 2048 columns 64 gates [0, 16, 32, 48] copies [4, 4, 4, 4, 4] from %zero, %zero, %zero, %zero : memref<?x2048xf32>, memref<2048x64xf32>, f32, f32, f32, f32 -> f32, f32, f32, f32
        ragged.store %s#0, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
  }
}

// -----

module @many {
  cfb.kernel @k attributes {lengths = [@dim.0], rows = [@dim.0], takes = [#cfb<takes ragged>], unit = #cfb<unit rows>} {
  ^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x16xf32>):
    cfb.yield %x : tensor<?x16xf32>
  }
  func.func private @f_k(%n: index, %x: !cfb.lazy<tensor<?x16xf32>>) -> !cfb.lazy<tensor<?x16xf32>> {
    %y = cfb.record @k(%n, %x) : (index, !cfb.lazy<tensor<?x16xf32>>) -> !cfb.lazy<tensor<?x16xf32>>
    return %y : !cfb.lazy<tensor<?x16xf32>>
  }
  gpu.module @cohort_gpu {
    ragged.kernel @k {
      %x = ragged.operand row : memref<?x16xf32>
      %r = ragged.result : memref<?x16xf32>
      %w = ragged.param @wk : memref<16x16xf32>
      // expected-remark @below {{its weights are read anew at each level on a GPU: a call has as many rows as its instance has}}
      ragged.tiles over [16] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
        %zero = arith.constant 0.0 : f32
        %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 16 + d1) k 16 columns 16 gates [0] copies [4, 4] from %zero : memref<?x16xf32>, memref<16x16xf32>, f32 -> f32
        ragged.store %s, %r (d0) -> (d0) : memref<?x16xf32>
      }
    }
  }
}
