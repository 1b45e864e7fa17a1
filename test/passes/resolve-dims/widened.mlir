// What is made of a widened tensor has the length that it was widened to, which stays one.
// RUN: %batch-opt %s --resolve-dims | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = cfb.length
// CHECK-NOT: tensor.dim
// CHECK: return %{{.*}}, %[[N]]
func.func @main(%x: tensor<3xf32>) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %three = arith.constant 3 : index
  %l = cfb.length %three
  %y = cfb.widen %x(%l) : tensor<3xf32> -> tensor<?xf32>
  %t = math.tanh %y : tensor<?xf32>
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  return %t, %n : tensor<?xf32>, index
}
