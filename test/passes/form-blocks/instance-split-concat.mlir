// What makes several dims of one of a concatenation is a call of its own: neighbours along the new dims
// may lie in different parts, and a kernel reads one part at a time.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @split
// CHECK: %[[JOINED:.*]] = cfb.block
// CHECK: tensor.concat
// CHECK: cfb.block {{.*}}%[[JOINED]]
// CHECK: tensor.expand_shape
func.func @split(%x: tensor<2x?xf32>, %y: tensor<4x?xf32>) -> tensor<2x3x?xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?xf32>
  %c = tensor.concat dim(0) %x, %y : (tensor<2x?xf32>, tensor<4x?xf32>) -> tensor<6x?xf32>
  %r = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 3, %n] : tensor<6x?xf32> into tensor<2x3x?xf32>
  return %r : tensor<2x3x?xf32>
}

// A dim of one entry more makes no such neighbours.
// CHECK-LABEL: func.func @one_more
// CHECK: cfb.block
// CHECK: tensor.concat
// CHECK: tensor.expand_shape
// CHECK-NOT: cfb.block
func.func @one_more(%x: tensor<2x?xf32>, %y: tensor<4x?xf32>) -> tensor<6x1x?xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?xf32>
  %c = tensor.concat dim(0) %x, %y : (tensor<2x?xf32>, tensor<4x?xf32>) -> tensor<6x?xf32>
  %r = tensor.expand_shape %c [[0, 1], [2]] output_shape [6, 1, %n] : tensor<6x?xf32> into tensor<6x1x?xf32>
  return %r : tensor<6x1x?xf32>
}
