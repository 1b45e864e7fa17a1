// No copy is made where too little is saved, where more is left than saved, and where the constant is not zero
// while the product starts from rows.
// RUN: %batch-opt %s --specialise-kernels | %FileCheck %s
// CHECK-NOT: _base
// CHECK-NOT: cfb.same

ml_program.global private @small(#ml_program.extern<tensor<8x8xf32>>) : tensor<8x8xf32>
ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @w(#ml_program.extern<tensor<64x128xf32>>) : tensor<64x128xf32>

cfb.kernel @small_product {
^bb0(%rows: index, %h: tensor<?x8xf32>, %x: tensor<?x8xf32>):
  %u = ml_program.global_load_const @small : tensor<8x8xf32>
  %p = linalg.matmul ins(%h, %u : tensor<?x8xf32>, tensor<8x8xf32>) outs(%x : tensor<?x8xf32>) -> tensor<?x8xf32>
  cfb.yield %p : tensor<?x8xf32>
}
cfb.kernel @more_is_left {
^bb0(%rows: index, %h: tensor<?x64xf32>, %x: tensor<?x64xf32>, %y: tensor<?x128xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %w = ml_program.global_load_const @w : tensor<64x128xf32>
  %p = linalg.matmul ins(%h, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%x : tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x128xf32>) outs(%y : tensor<?x128xf32>) -> tensor<?x128xf32>
  cfb.yield %p, %q : tensor<?x64xf32>, tensor<?x128xf32>
}
cfb.kernel @of_ones {
^bb0(%rows: index, %h: tensor<?x64xf32>, %x: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %p = linalg.matmul ins(%h, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%x : tensor<?x64xf32>) -> tensor<?x64xf32>
  cfb.yield %p : tensor<?x64xf32>
}

func.func @f(%s: !cfb.lazy<tensor<8xf32>>, %x: !cfb.lazy<tensor<64xf32>>, %y: !cfb.lazy<tensor<128xf32>>) {
  %z8 = cfb.constant dense<0.0> : tensor<8xf32> -> !cfb.lazy<tensor<8xf32>>
  %z = cfb.constant dense<0.0> : tensor<64xf32> -> !cfb.lazy<tensor<64xf32>>
  %one = cfb.constant dense<1.0> : tensor<64xf32> -> !cfb.lazy<tensor<64xf32>>
  %a = cfb.record @small_product(%z8, %s) : (!cfb.lazy<tensor<8xf32>>, !cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<8xf32>>
  %b:2 = cfb.record @more_is_left(%z, %x, %y) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<128xf32>>) -> (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<128xf32>>)
  %c = cfb.record @of_ones(%one, %x) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  return
}
