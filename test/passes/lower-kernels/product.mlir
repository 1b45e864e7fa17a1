// A product is a table of its left rows and one call of the shared code. It starts from the bias, a
// second product goes on in its memory, and rows of a packed weight are an offset into its panels.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<24x40xf32>>) : tensor<24x40xf32>
ml_program.global private @b(#ml_program.extern<tensor<40xf32>>) : tensor<40xf32>

// CHECK-LABEL: func.func @joined
// CHECK-SAME: \22constants\22:[{\22panels\22:{\22param\22:\22w\22,\22width\22:32}},{\22plain\22:{\22param\22:\22b\22}}]
// CHECK-SAME: \22row_tile\22:12,\22flops_per_row\22:1920
// CHECK: llvm.call @cohort_product(
// CHECK: llvm.getelementptr %{{.*}}[1024] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.call @cohort_product(
// CHECK-NOT: llvm.call @cohort_product(
// CHECK: llvm.func internal @cohort_product_r12_v2
// CHECK-SAME: no_inline
cfb.kernel @joined {
^bb0(%rows: index, %x: tensor<?x8xf32>, %y: tensor<?x16xf32>):
  %w = ml_program.global_load_const @w : tensor<24x40xf32>
  %b = ml_program.global_load_const @b : tensor<40xf32>
  %u = tensor.extract_slice %w[0, 0] [8, 40] [1, 1] : tensor<24x40xf32> to tensor<8x40xf32>
  %v = tensor.extract_slice %w[8, 0] [16, 40] [1, 1] : tensor<24x40xf32> to tensor<16x40xf32>
  %e = tensor.empty(%rows) : tensor<?x40xf32>
  %s = linalg.broadcast ins(%b : tensor<40xf32>) outs(%e : tensor<?x40xf32>) dimensions = [0]
  %p = linalg.matmul ins(%x, %u : tensor<?x8xf32>, tensor<8x40xf32>) outs(%s : tensor<?x40xf32>) -> tensor<?x40xf32>
  %q = linalg.matmul ins(%y, %v : tensor<?x16xf32>, tensor<16x40xf32>) outs(%p : tensor<?x40xf32>) -> tensor<?x40xf32>
  cfb.yield %q : tensor<?x40xf32>
}
