// Dims that a reshape joins are read from memory in which they lie one behind the other; the padded rows
// of a product are brought there first.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @joined(
// CHECK: llvm.intr.masked.store
cfb.kernel @joined {
^bb0(%rows: index, %x: tensor<?x2x3xf32>):
  %line = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x2x3xf32> into tensor<?x6xf32>
  cfb.yield %line : tensor<?x6xf32>
}

ml_program.global private @w(#ml_program.extern<tensor<3x5xf32>>) : tensor<3x5xf32>

// CHECK-LABEL: func.func @product(
// CHECK: llvm.intr.masked.store
cfb.kernel @product {
^bb0(%rows: index, %x: tensor<?x2x3xf32>):
  %w = ml_program.global_load_const @w : tensor<3x5xf32>
  %c2 = arith.constant 2 : index
  %all = arith.muli %rows, %c2 : index
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x2x3xf32> into tensor<?x3xf32>
  %e = tensor.empty(%all) : tensor<?x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %p = linalg.matmul ins(%flat, %w : tensor<?x3xf32>, tensor<3x5xf32>) outs(%z : tensor<?x5xf32>) -> tensor<?x5xf32>
  %q = tensor.expand_shape %p [[0, 1], [2]] output_shape [%rows, 2, 5] : tensor<?x5xf32> into tensor<?x2x5xf32>
  %line = tensor.collapse_shape %q [[0], [1, 2]] : tensor<?x2x5xf32> into tensor<?x10xf32>
  cfb.yield %line : tensor<?x10xf32>
}
