// What a concatenation is long is known by it alone: it stays, and so does the length of what a call
// gives.
// RUN: %batch-opt %s --resolve-dims | %FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[J:.*]] = tensor.concat
  // CHECK: tensor.dim %[[J]]
  %j = tensor.concat dim(0) %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %n = tensor.dim %j, %c0 : tensor<?xf32>
  // CHECK: %[[F:.*]] = call @f
  // CHECK: tensor.dim %[[F]]
  %f = call @f(%j) : (tensor<?xf32>) -> tensor<?xf32>
  %t = math.tanh %f : tensor<?xf32>
  %m = tensor.dim %t, %c0 : tensor<?xf32>
  return %n, %m : index, index
}
func.func private @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }
