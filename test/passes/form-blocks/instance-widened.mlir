// A tensor of known shape that is used as one of any: the length of the block's result is that number.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK: cfb.block "main"(%[[THREE]], %{{.*}}) : (index, tensor<3x8xf32>) -> tensor<?x8xf32>
// CHECK-SAME: attributes {leading = {{\[\[}}]], lengths = [@dim.0], rows = [@dim.0], unit = "calls"}
// CHECK: tensor.cast
func.func @main(%x: tensor<3x8xf32>) -> tensor<?x8xf32> {
  %c = tensor.cast %x : tensor<3x8xf32> to tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
