// A block has as many rows as leave their scratch in the cache; but weights that are larger than the cache are read
// anew for each block, and where these are the most there are more rows to a block.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s

ml_program.global private @in(#ml_program.extern<tensor<256x4096xf32>>) : tensor<256x4096xf32>
ml_program.global private @out(#ml_program.extern<tensor<4096x256xf32>>) : tensor<4096x256xf32>
ml_program.global private @narrow(#ml_program.extern<tensor<16x4096xf32>>) : tensor<16x4096xf32>

// Eight megabytes of weights, and thirty-three kilobytes of scratch a row.
// CHECK-LABEL: ragged.kernel @large {
// CHECK: ragged.blocks of 120 tile 12 {
cfb.kernel @large {
^bb0(%rows: index, %x: tensor<?x256xf32>):
  %zero = arith.constant 0.0 : f32
  %u = ml_program.global_load_const @in : tensor<256x4096xf32>
  %v = ml_program.global_load_const @out : tensor<4096x256xf32>
  %e = tensor.empty(%rows) : tensor<?x4096xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x256xf32>, tensor<256x4096xf32>) outs(%s : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %t = math.tanh %p : tensor<?x4096xf32>
  %f = tensor.empty(%rows) : tensor<?x256xf32>
  %r = linalg.fill ins(%zero : f32) outs(%f : tensor<?x256xf32>) -> tensor<?x256xf32>
  %q = linalg.matmul ins(%t, %v : tensor<?x4096xf32>, tensor<4096x256xf32>) outs(%r : tensor<?x256xf32>) -> tensor<?x256xf32>
  cfb.yield %q : tensor<?x256xf32>
}

// A quarter of a megabyte of weights stays in the cache.
// CHECK-LABEL: ragged.kernel @small {
// CHECK: ragged.blocks of 24 tile 12 {
cfb.kernel @small {
^bb0(%rows: index, %x: tensor<?x16xf32>):
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @narrow : tensor<16x4096xf32>
  %e = tensor.empty(%rows) : tensor<?x4096xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x4096xf32>) outs(%s : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %t = math.tanh %p : tensor<?x4096xf32>
  cfb.yield %t : tensor<?x4096xf32>
}
