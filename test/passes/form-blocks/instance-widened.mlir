// A tensor of known shape that is used as one of any: its length is one of the block like any other.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK: %[[N:.*]] = cfb.length
// CHECK: cfb.block "main"(%[[N]], %{{.*}}) : (index, tensor<3x8xf32>) -> tensor<?x8xf32>
// CHECK-SAME: attributes {leading = {{\[\[}}]], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit calls>}
// CHECK: cfb.widen
func.func @main(%x: tensor<3x8xf32>) -> tensor<?x8xf32> {
  %three = arith.constant 3 : index
  %n = cfb.length %three
  %c = cfb.widen %x(%n) : tensor<3x8xf32> -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
