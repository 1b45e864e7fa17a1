// Only the entry has phases, since only there every instance comes by once. A recursion that needs
// an earlier one of the same function is not a phase: calls of both may run together. What a function
// without recursion gives is at the same depth for all.
// RUN: %batch-opt %s --find-phases | %FileCheck %s

// CHECK-NOT: cfb.phase
func.func private @cell(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @cell(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %o = cfb.block "cell"(%r) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    cfb.yield %v : tensor<4xf32>
  }
  return %o : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %o = cfb.block "layer"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    cfb.yield %v : tensor<4xf32>
  }
  return %o : tensor<4xf32>
}

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {cfb.entry} {
  %l = func.call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %k = func.call @layer(%l) : (tensor<4xf32>) -> tensor<4xf32>
  %a = func.call @cell(%k) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @cell(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
