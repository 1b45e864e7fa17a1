// Upstream's canonicalisation makes no known shape of a length that is to stay one, nor of what is made with it.
// RUN: %batch-opt %s --canonicalize --cse | %FileCheck %s

// CHECK-LABEL: func.func @stays
// CHECK: %[[N:.*]] = cfb.length %{{.*}}
// CHECK: cfb.widen %{{.*}}(%[[N]]) : tensor<3xf32> -> tensor<?xf32>
// CHECK: tensor.empty(%[[N]]) : tensor<?xf32>
// CHECK: linalg.fill {{.*}} -> tensor<?xf32>
// CHECK: arith.addf {{.*}} : tensor<?xf32>
func.func @stays(%x: tensor<3xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3 : index
  %n = cfb.length %three
  %y = cfb.widen %x(%n) : tensor<3xf32> -> tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = arith.addf %y, %z : tensor<?xf32>
  return %s : tensor<?xf32>
}
