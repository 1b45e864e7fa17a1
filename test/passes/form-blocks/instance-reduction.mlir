// A reduction over an instance dim needs the rows together and leaves one; what is done to that one is
// a block as ever, without a word of lengths.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = cfb.block "main"
// CHECK-SAME: attributes {leading = {{\[\[}}@dim.0]], lengths = [@dim.0], rows = [], unit = #cfb<unit calls>}
// CHECK: linalg.reduce
// CHECK: cfb.block "main"(%[[S]]) : (tensor<8xf32>) -> tensor<8xf32> {
// CHECK: math.tanh
func.func @main(%x: tensor<?x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0]
  %t = math.tanh %s : tensor<8xf32>
  return %t : tensor<8xf32>
}
