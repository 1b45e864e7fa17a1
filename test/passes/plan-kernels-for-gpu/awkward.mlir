// Sizes that are not a multiple of four have no 16 aligned bytes: each copy has one element, and fewer terms are in shared
// memory at once.
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels-for-gpu | %batch-opt --lower-kernels-to-gpu) <(%batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu)

// CHECK: ragged.tiles over [29] small [2, 1, 32, 1] large [8, 1, 8, 1] from 4096 {
// CHECK: ragged.products {{.*}} k 61 columns 29 gates [0] copies [1, 1] from
ml_program.global private @w(#ml_program.extern<tensor<61x29xf32>>) : tensor<61x29xf32>

cfb.kernel @odd {
^bb0(%rows: index, %x: tensor<?x61xf32>):
  %w = ml_program.global_load_const @w : tensor<61x29xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x29xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x29xf32>) -> tensor<?x29xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x61xf32>, tensor<61x29xf32>) outs(%z : tensor<?x29xf32>) -> tensor<?x29xf32>
  cfb.yield %p : tensor<?x29xf32>
}
