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

// CHECK: module attributes {cfb.caches = array<i64: 16384, 524288, 4194304>} {
!l = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
!r = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
!p = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
module attributes {cfb.caches = array<i64: 16384, 524288, 4194304>} {
  // A panel takes an eighth of the second cache, and all of them half of that behind.
  // CHECK-LABEL: ragged.kernel @product
  // CHECK: ragged.matmul over [@n, @n] depth [@m] rows 48 blocks [1024, 512]
  cfb.kernel @product attributes {unit = #cfb<unit calls>, lengths = [@n, @m], rows = [@n, @n]} {
  ^bb0(%calls: index, %n: tensor<?xindex>, %m: tensor<?xindex>, %x: !l, %y: !r):
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %d = tensor.dim %x, %c1 : !l
    %e = tensor.empty(%calls, %d, %d) : !p
    %z = linalg.fill ins(%zero : f32) outs(%e : !p) -> !p
    %p = linalg.batch_matmul ins(%x, %y : !l, !r) outs(%z : !p) -> !p
    cfb.yield %p : !p
  }

  // Weights of half a megabyte are read again for each block: more than half of the second cache, they want more rows.
  // CHECK-LABEL: ragged.kernel @rows
  // CHECK: ragged.blocks of 192 tile 12 {
  ml_program.global private @w(#ml_program.extern<tensor<2048x64xf32>>) : tensor<2048x64xf32>
  cfb.kernel @rows {
  ^bb0(%rows: index, %x: tensor<?x2048xf32>):
    %w = ml_program.global_load_const @w : tensor<2048x64xf32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%rows) : tensor<?x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x2048xf32>, tensor<2048x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
    cfb.yield %p : tensor<?x64xf32>
  }
}

// -----

// The same weights stay in the usual second cache.
// CHECK-LABEL: ragged.kernel @rows
// CHECK: ragged.blocks of 96 tile 12 {
ml_program.global private @w(#ml_program.extern<tensor<2048x64xf32>>) : tensor<2048x64xf32>
cfb.kernel @rows {
^bb0(%rows: index, %x: tensor<?x2048xf32>):
  %w = ml_program.global_load_const @w : tensor<2048x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x2048xf32>, tensor<2048x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  cfb.yield %p : tensor<?x64xf32>
}

// -----

// expected-error@+1 {{expected `cfb.caches` to be three numbers of bytes from 4096 up, of which none is smaller than the one before}}
module attributes {cfb.caches = array<i64: 32768, 1024>} {
}
