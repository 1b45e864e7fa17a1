// A product of too few columns for tensor cores keeps f32, and a remark says so at the product: no
// precision is given up or kept silently.
// RUN: %batch-opt %s --round-products-bf16 --plan-kernels-for-gpu --lower-kernels-to-gpu --verify-diagnostics | %FileCheck %s

ml_program.global private @v(#ml_program.extern<tensor<64x3xf32>>) : tensor<64x3xf32>

// CHECK: narrow = "{
// CHECK-NOT: precision
// CHECK: gpu.func @narrow$0
// CHECK-NOT: nvvm.mma
cfb.kernel @narrow {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %v = ml_program.global_load_const @v : tensor<64x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  // expected-remark @below {{this product is of f32, not bf16: it has 3 columns, too few for tensor cores}}
  %p = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x3xf32>) outs(%z : tensor<?x3xf32>) -> tensor<?x3xf32>
  cfb.yield %p : tensor<?x3xf32>
}
