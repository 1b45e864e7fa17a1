// A reshape that makes one dim of several has a block of its own, apart from what needs the rows of an
// instance together.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK: %[[JOINED:[0-9]+]] = cfb.block "main"(%arg0)
// CHECK: tensor.collapse_shape
// CHECK: cfb.block "main"(%c6, %[[JOINED]])
// CHECK-SAME: unit = "calls"
// CHECK: tensor.cast
func.func @main(%x: tensor<2x3xf32>) -> tensor<?xf32> attributes {cfb.argument_dims = [["", ""]]} {
  %line = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %rows = tensor.cast %line : tensor<6xf32> to tensor<?xf32>
  return %rows : tensor<?xf32>
}
