// A reshape that made several dims of one goes back by the opposite one. Dims that count rows, those up to
// the last instance dim, are joined by counting the rows anew: kernels over calls cannot read several dims
// as one.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s

func.func @main(%n: index, %x: tensor<6x?xf32>, %y: tensor<6x?x4xf32>, %z: tensor<?x6xf32>)
    -> (tensor<3x2x?xf32>, tensor<3x1x2x?x2x2xf32>, tensor<?x3x2xf32>) attributes {cfb.entry} {
  %a = cfb.block "rows"(%n, %x) : (index, tensor<6x?xf32>) -> (tensor<3x2x?xf32>)
      attributes {leading = [[6, @n]], lengths = [@n], reuse = [#cfb<reuse row>, #cfb<reuse row>], rows = [3, 2, @n], unit = #cfb<unit calls>} {
  ^bb0(%k: index, %v: tensor<6x?xf32>):
    %r = tensor.expand_shape %v [[0, 1], [2]] output_shape [3, 2, %k] : tensor<6x?xf32> into tensor<3x2x?xf32>
    cfb.yield %r : tensor<3x2x?xf32>
  }
  %b = cfb.block "both"(%n, %y) : (index, tensor<6x?x4xf32>) -> (tensor<3x1x2x?x2x2xf32>)
      attributes {leading = [[6, @n]], lengths = [@n], reuse = [#cfb<reuse row>, #cfb<reuse row>], rows = [3, 1, 2, @n], unit = #cfb<unit calls>} {
  ^bb0(%k: index, %v: tensor<6x?x4xf32>):
    %r = tensor.expand_shape %v [[0, 1, 2], [3], [4, 5]] output_shape [3, 1, 2, %k, 2, 2] : tensor<6x?x4xf32> into tensor<3x1x2x?x2x2xf32>
    cfb.yield %r : tensor<3x1x2x?x2x2xf32>
  }
  %c = cfb.block "elements"(%n, %z) : (index, tensor<?x6xf32>) -> (tensor<?x3x2xf32>)
      attributes {leading = [[@n]], lengths = [@n], reuse = [#cfb<reuse row>, #cfb<reuse row>], rows = [@n], unit = #cfb<unit rows>} {
  ^bb0(%k: index, %v: tensor<?x6xf32>):
    %r = tensor.expand_shape %v [[0], [1, 2]] output_shape [%k, 3, 2] : tensor<?x6xf32> into tensor<?x3x2xf32>
    cfb.yield %r : tensor<?x3x2xf32>
  }
  return %a, %b, %c : tensor<3x2x?xf32>, tensor<3x1x2x?x2x2xf32>, tensor<?x3x2xf32>
}

// CHECK-LABEL: func.func @rows$gradient$0(
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<3x2x?xf32>) -> tensor<6x?xf32>
// CHECK-NOT: tensor.collapse_shape
// CHECK: %[[BACK:[a-z0-9]*]] = cfb.view %[[G]](%{{[a-z0-9]*}}) : tensor<3x2x?xf32> -> tensor<6x?xf32>
// CHECK: return %[[BACK]]

// CHECK-LABEL: func.func @both$gradient$0(
// CHECK: %[[ROWS:[a-z0-9]*]] = tensor.collapse_shape %{{[a-z0-9]*}} {{\[\[}}0, 1], [2], [3], [4, 5]] : tensor<3x1x2x?x2x2xf32> into tensor<3x2x?x4xf32>
// CHECK: %[[BACK:[a-z0-9]*]] = cfb.view %[[ROWS]](%{{[a-z0-9]*}}) : tensor<3x2x?x4xf32> -> tensor<6x?x4xf32>
// CHECK: return %[[BACK]]

// CHECK-LABEL: func.func @elements$gradient$0(
// CHECK-NOT: cfb.view
// CHECK: %[[BACK:[a-z0-9]*]] = tensor.collapse_shape %{{[a-z0-9]*}} {{\[\[}}0], [1, 2]]
// CHECK: return %[[BACK]]
