// Sizes that are no multiple of four have no 16 aligned bytes: elements are loaded one by one.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<61x29xf32>>) : tensor<61x29xf32>

// CHECK: gpu.func @odd$0_small
// CHECK-NOT: !llvm.ptr<1> -> vector
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK-NOT: !llvm.ptr<1> -> vector
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
