// Products of all rows of a matrix are fused on the collapsed rows, and every part is given its
// matrix shape back as before; the kernel lowers.
// RUN: %batch-opt %s --fuse-products --canonicalize | %FileCheck %s
// RUN: %batch-opt %s --fuse-products --canonicalize --plan-kernels --lower-kernels | %FileCheck %s --check-prefix=ONE

ml_program.global private @wq(#ml_program.extern<tensor<2x4xf32>>) : tensor<2x4xf32>
ml_program.global private @wk(#ml_program.extern<tensor<2x3xf32>>) : tensor<2x3xf32>

// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x5x2xf32>):
// CHECK: %[[F:.*]] = tensor.collapse_shape %[[X]]
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[F]], %{{.*}} : tensor<?x2xf32>, tensor<2x7xf32>)
// CHECK: %[[Q:.*]] = tensor.extract_slice %[[P]][0, 0] [%{{.*}}, 4]
// CHECK: %[[K:.*]] = tensor.extract_slice %[[P]][0, 4] [%{{.*}}, 3]
// CHECK: tensor.expand_shape %[[Q]]
// CHECK: tensor.expand_shape %[[K]]
// ONE: func.func @attention
// ONE: llvm.call @cohort_product(
// ONE-NOT: llvm.call @cohort_product(
// ONE: return
cfb.kernel @attention {
^bb0(%rows: index, %x: tensor<?x5x2xf32>):
  %wq = ml_program.global_load_const @wq : tensor<2x4xf32>
  %wk = ml_program.global_load_const @wk : tensor<2x3xf32>
  %zero = arith.constant 0.0 : f32
  %f = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x5x2xf32> into tensor<?x2xf32>
  %qe = tensor.empty(%rows) : tensor<?x5x4xf32>
  %qz = linalg.fill ins(%zero : f32) outs(%qe : tensor<?x5x4xf32>) -> tensor<?x5x4xf32>
  %qf = tensor.collapse_shape %qz [[0, 1], [2]] : tensor<?x5x4xf32> into tensor<?x4xf32>
  %q = linalg.matmul ins(%f, %wq : tensor<?x2xf32>, tensor<2x4xf32>) outs(%qf : tensor<?x4xf32>) -> tensor<?x4xf32>
  %q3 = tensor.expand_shape %q [[0, 1], [2]] output_shape [%rows, 5, 4] : tensor<?x4xf32> into tensor<?x5x4xf32>
  %ke = tensor.empty(%rows) : tensor<?x5x3xf32>
  %kz = linalg.fill ins(%zero : f32) outs(%ke : tensor<?x5x3xf32>) -> tensor<?x5x3xf32>
  %kf = tensor.collapse_shape %kz [[0, 1], [2]] : tensor<?x5x3xf32> into tensor<?x3xf32>
  %k = linalg.matmul ins(%f, %wk : tensor<?x2xf32>, tensor<2x3xf32>) outs(%kf : tensor<?x3xf32>) -> tensor<?x3xf32>
  %k3 = tensor.expand_shape %k [[0, 1], [2]] output_shape [%rows, 5, 3] : tensor<?x3xf32> into tensor<?x5x3xf32>
  cfb.yield %q3, %k3 : tensor<?x5x4xf32>, tensor<?x5x3xf32>
}
