// Sizes that are no multiple of four have no 16 aligned bytes: elements are copied one by one, and
// what lies behind the last k is filled with zeros.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<61x29xf32>>) : tensor<61x29xf32>

// CHECK: gpu.func @odd$0_small
// CHECK-NOT: , 16, cache
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache {{.*}}ca, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK-NOT: , 16, cache
// CHECK: cfb.kernel
cfb.kernel @odd {
^bb0(%rows: index, %x: tensor<?x61xf32>):
  %w = ml_program.global_load_const @w : tensor<61x29xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x29xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x29xf32>) -> tensor<?x29xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x61xf32>, tensor<61x29xf32>) outs(%z : tensor<?x29xf32>) -> tensor<?x29xf32>
  cfb.yield %p : tensor<?x29xf32>
}
