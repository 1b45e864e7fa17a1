// Several host scalars of an instance are one tensor a row, put side by side axis by axis.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: ^bb0(%[[ROWS:.*]]: index, %[[A:.*]]: tensor<?xf32>, %[[B:.*]]: tensor<?xf32>):
// CHECK: %[[LEFT:.*]] = tensor.expand_shape %[[A]] {{\[\[}}0, 1]] output_shape [%[[ROWS]], 1] : tensor<?xf32> into tensor<?x1xf32>
// CHECK: %[[RIGHT:.*]] = tensor.expand_shape %[[B]]
// CHECK: %[[ROW:.*]] = tensor.concat dim(1) %[[LEFT]], %[[RIGHT]] : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
// CHECK: tensor.expand_shape %[[ROW]] {{\[\[}}0, 1], [2]] output_shape [%[[ROWS]], 1, 2] : tensor<?x2xf32> into tensor<?x1x2xf32>
// CHECK: tensor.concat dim(1) {{.*}} -> tensor<?x2x2xf32>
func.func @f(%x: f32, %y: f32) -> tensor<2x2xf32> {
  %r = cfb.block "f"(%x, %y) : (f32, f32) -> (tensor<2x2xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%a: f32, %b: f32):
    %t = tensor.from_elements %a, %b, %b, %a : tensor<2x2xf32>
    cfb.yield %t : tensor<2x2xf32>
  }
  return %r : tensor<2x2xf32>
}
