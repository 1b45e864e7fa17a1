// The sizes of blocks follow from the caches that the module is for: rows whose scratch fits, and more
// of them where weights are read again for each block. Where nothing is said, they are those of a usual server.
// RUN: %batch-opt %s --plan-kernels --split-input-file --verify-diagnostics | %FileCheck %s

// CHECK: module attributes {cfb.caches = array<i64: 16384, 262144, 1048576>} {
module attributes {cfb.caches = array<i64: 16384, 262144, 1048576>} {
  ml_program.global private @w(#ml_program.extern<tensor<2048x2048xf32>>) : tensor<2048x2048xf32>

  // CHECK-LABEL: ragged.kernel @rows
  // CHECK: ragged.blocks of 60 tile 12 {
  cfb.kernel @rows {
  ^bb0(%rows: index, %x: tensor<?x2048xf32>):
    %w = ml_program.global_load_const @w : tensor<2048x2048xf32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%rows) : tensor<?x2048xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2048xf32>) -> tensor<?x2048xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x2048xf32>, tensor<2048x2048xf32>) outs(%z : tensor<?x2048xf32>) -> tensor<?x2048xf32>
    cfb.yield %p : tensor<?x2048xf32>
  }
}

// -----

// expected-error@+1 {{expected `cfb.caches` to be three numbers of bytes from 4096 up, of which none is smaller than the one before}}
module attributes {cfb.caches = array<i64: 32768, 1024>} {
}
