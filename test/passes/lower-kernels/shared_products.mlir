// Threads may share a large product of few rows: 64 x 96 multiply-adds a row are worth it from eleven rows on. One of a
// single panel is computed as a whole, and of 8 x 96 there are never rows enough in a block.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
ml_program.global private @v(#ml_program.extern<tensor<96x32xf32>>) : tensor<96x32xf32>
ml_program.global private @u(#ml_program.extern<tensor<8x48xf32>>) : tensor<8x48xf32>

// CHECK-LABEL: func.func @layers
// CHECK: %[[PRODUCT:.*]] = llvm.mlir.addressof @cohort_product : !llvm.ptr
// CHECK: %[[ROWS:.*]] = arith.minsi
// CHECK: %[[MANY:.*]] = arith.cmpi sge, %[[ROWS]], %c11_i64 : i64
// CHECK: scf.if %[[MANY]] {
// CHECK-NEXT: llvm.call @cohort_share_product(%[[PRODUCT]], %[[TABLE:[^,]*]], %[[ENTRY:[^,]*]], %[[PANELS:[^,]*]],
// CHECK: } else {
// CHECK-NEXT: llvm.call @cohort_product(%[[TABLE]], %[[ENTRY]], %[[PANELS]],
// CHECK-NOT: scf.if
// CHECK: llvm.call @cohort_product(
// CHECK-NOT: scf.if
// CHECK: llvm.call @cohort_product(
// CHECK-NOT: llvm.call @cohort_share_product
// CHECK: llvm.func @cohort_share_product(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64)
cfb.kernel @layers {
^bb0(%rows: index, %x: tensor<?x64xf32>, %y: tensor<?x8xf32>):
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %v = ml_program.global_load_const @v : tensor<96x32xf32>
  %u = ml_program.global_load_const @u : tensor<8x48xf32>
  %zero = arith.constant 0.0 : f32
  %ep = tensor.empty(%rows) : tensor<?x96xf32>
  %zp = linalg.fill ins(%zero : f32) outs(%ep : tensor<?x96xf32>) -> tensor<?x96xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%zp : tensor<?x96xf32>) -> tensor<?x96xf32>
  %eq = tensor.empty(%rows) : tensor<?x32xf32>
  %zq = linalg.fill ins(%zero : f32) outs(%eq : tensor<?x32xf32>) -> tensor<?x32xf32>
  %q = linalg.matmul ins(%p, %v : tensor<?x96xf32>, tensor<96x32xf32>) outs(%zq : tensor<?x32xf32>) -> tensor<?x32xf32>
  %er = tensor.empty(%rows) : tensor<?x48xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<?x48xf32>) -> tensor<?x48xf32>
  %r = linalg.matmul ins(%y, %u : tensor<?x8xf32>, tensor<8x48xf32>) outs(%zr : tensor<?x48xf32>) -> tensor<?x48xf32>
  cfb.yield %q, %r : tensor<?x32xf32>, tensor<?x48xf32>
}
