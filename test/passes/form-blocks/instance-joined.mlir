// A reshape that makes one dim of several has a block of its own, apart from what needs the rows of an
// instance together.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK: %[[SIX:.*]] = cfb.length
// CHECK: %[[JOINED:[0-9]+]] = cfb.block "main"(%arg0)
// CHECK: tensor.collapse_shape
// CHECK: cfb.block "main"(%[[SIX]], %[[JOINED]])
// CHECK-SAME: unit = #cfb<unit calls>
// CHECK: cfb.widen
func.func @main(%x: tensor<2x3xf32>) -> tensor<?xf32> attributes {cfb.argument_dims = [["", ""]]} {
  %line = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %number = arith.constant 6 : index
  %six = cfb.length %number
  %rows = cfb.widen %line(%six) : tensor<6xf32> -> tensor<?xf32>
  return %rows : tensor<?xf32>
}
