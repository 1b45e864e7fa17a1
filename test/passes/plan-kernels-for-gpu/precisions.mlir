// With a precision that the module names, tiles are for tensor cores, of two neighbouring rows and columns a thread or
// more. Weights that are parameters are rounded when they are loaded; one that is computed is not, and is computed once,
// before the tiles. A product of few columns stays a fold. One of 256 columns and more has a third size, the largest, for
// many rows.
// RUN: %batch-opt %s --round-products-tf32 --plan-kernels-for-gpu | %FileCheck %s --check-prefix=TF32
// RUN: %batch-opt %s --round-products-bf16 --plan-kernels-for-gpu | %FileCheck %s --check-prefix=BF16
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s --check-prefix=F32

// TF32: ragged.kernel @wide {
// TF32: ragged.tiles over [64] small [2, 2, 32, 4] large [4, 8, 32, 2] from 8192 rounded tf32 weights {
// TF32: ragged.kernel @narrow {
// TF32-NOT: ragged.tiles
// TF32: ragged.fold over [3, 64] folding [1] into %{{.*}} (d0) -> (d0) lanes 1 vectors 4 :
// TF32: ragged.kernel @computed {
// TF32: %[[W:.*]] = ragged.scratch : memref<64x64xf32>
// TF32: ragged.nest over [64, 64] by 4 {
// TF32: ragged.tiles over [64] small [2, 2, 32, 4] large [4, 8, 32, 2] from 8192 rounded tf32 {
// TF32: ragged.products %{{.*}} () -> (0) with %[[W]] (d0, d1) -> (d0 * 64 + d1)
// TF32: ragged.kernel @columns {
// TF32: ragged.tiles over [512] small [2, 2, 32, 4] large [4, 8, 32, 2] from 1024 largest [8, 16, 16, 4, 8, 3] from 8192 rounded tf32 weights {
// TF32: ragged.kernel @gates {
// TF32: ragged.tiles over [256] small [2, 2, 16, 4] large [4, 8, 16, 2] from 2048 largest [8, 8, 16, 4, 8, 3] from 8192 rounded tf32 weights {
// BF16: ragged.tiles over [64] small [2, 2, 32, 4] large [4, 8, 32, 2] from 8192 rounded bf16 weights {
// BF16: ragged.kernel @columns {
// BF16: largest [8, 16, 16, 4, 8, 4] from 8192 rounded bf16 weights {
// F32: ragged.tiles over [64]
// F32-NOT: {{rounded|largest}}
ml_program.global private @w(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @u(#ml_program.extern<tensor<64x512xf32>>) : tensor<64x512xf32>
ml_program.global private @v(#ml_program.extern<tensor<64x3xf32>>) : tensor<64x3xf32>



cfb.kernel @wide {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = arith.negf %p : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}

cfb.kernel @narrow {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %v = ml_program.global_load_const @v : tensor<64x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %p = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x3xf32>) outs(%z : tensor<?x3xf32>) -> tensor<?x3xf32>
  cfb.yield %p : tensor<?x3xf32>
}

cfb.kernel @computed {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %v = math.sqrt %w : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  cfb.yield %p : tensor<?x64xf32>
}

cfb.kernel @columns {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x512xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x64xf32>, tensor<64x512xf32>) outs(%z : tensor<?x512xf32>) -> tensor<?x512xf32>
  cfb.yield %p : tensor<?x512xf32>
}

cfb.kernel @gates {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x512xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x64xf32>, tensor<64x512xf32>) outs(%z : tensor<?x512xf32>) -> tensor<?x512xf32>
  %a = tensor.extract_slice %p[0, 0] [%rows, 256] [1, 1] : tensor<?x512xf32> to tensor<?x256xf32>
  %b = tensor.extract_slice %p[0, 256] [%rows, 256] [1, 1] : tensor<?x512xf32> to tensor<?x256xf32>
  %m = arith.mulf %a, %b : tensor<?x256xf32>
  cfb.yield %m : tensor<?x256xf32>
}
