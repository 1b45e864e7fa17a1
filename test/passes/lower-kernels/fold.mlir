// A sum of products folds with a multiply-add, in lanes along the result's last dim; a sum along the
// row's last dim folds lanes that are then folded together.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @both
// CHECK: vector.fma
// CHECK: llvm.store %{{.*}} : vector<16xf32>, !llvm.ptr
// CHECK: vector.shuffle
// CHECK: vector.extract %{{.*}}[0]
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr
cfb.kernel @both {
^bb0(%rows: index, %x: tensor<?x6xf32>, %m: tensor<?x6x32xf32>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x32xf32>
  %e0 = tensor.empty(%rows) : tensor<?x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x6xf32>) -> tensor<?x6xf32>
  %p = linalg.batch_vecmat ins(%x, %m : tensor<?x6xf32>, tensor<?x6x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.reduce { arith.addf } ins(%m : tensor<?x6x32xf32>) outs(%z0 : tensor<?x6xf32>) dimensions = [2]
  cfb.yield %p, %s : tensor<?x32xf32>, tensor<?x6xf32>
}
