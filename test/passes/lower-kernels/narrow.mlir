// A vote to stop is a product of one column. A vector of columns would waste most of its lanes, so
// the weight is packed column by column and the lanes run along k; rows of it are an offset as ever.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<512x1xf32>>) : tensor<512x1xf32>

// CHECK-LABEL: func.func @vote
// CHECK-SAME: {\22panels\22:{\22param\22:\22w\22,\22width\22:1}}
// CHECK: llvm.call @cohort_narrow_product(
// CHECK: llvm.getelementptr %{{.*}}[1024] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.call @cohort_narrow_product(
// CHECK-NOT: llvm.call @cohort_product(
// CHECK: llvm.func internal @cohort_product_r12_v2
cfb.kernel @vote {
^bb0(%rows: index, %x: tensor<?x256xf32>, %y: tensor<?x256xf32>):
  %w = ml_program.global_load_const @w : tensor<512x1xf32>
  %u = tensor.extract_slice %w[0, 0] [256, 1] [1, 1] : tensor<512x1xf32> to tensor<256x1xf32>
  %v = tensor.extract_slice %w[256, 0] [256, 1] [1, 1] : tensor<512x1xf32> to tensor<256x1xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1xf32>) -> tensor<?x1xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x256xf32>, tensor<256x1xf32>) outs(%z : tensor<?x1xf32>) -> tensor<?x1xf32>
  %q = linalg.matmul ins(%y, %v : tensor<?x256xf32>, tensor<256x1xf32>) outs(%p : tensor<?x1xf32>) -> tensor<?x1xf32>
  cfb.yield %q : tensor<?x1xf32>
}
