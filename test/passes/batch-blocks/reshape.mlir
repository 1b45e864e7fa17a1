// Reshapes group the other dims as before, one further; a rank of 0 joins the batch dim.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK-DAG: tensor.collapse_shape %{{.*}} {{\[}}[0, 1]] : tensor<?x1xf32> into tensor<?xf32>
// CHECK-DAG: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : tensor<?x2x3xf32> into tensor<?x6xf32>
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<?xf32>) outs(%{{.*}} : tensor<?x6xf32>) dimensions = [1]
func.func @f(%x: tensor<1xf32>, %y: tensor<2x3xf32>) -> tensor<6xf32> {
  %r = cfb.block "f"(%x, %y) : (tensor<1xf32>, tensor<2x3xf32>) -> (tensor<6xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%b_x: tensor<1xf32>, %b_y: tensor<2x3xf32>):
    %s = tensor.collapse_shape %b_x [] : tensor<1xf32> into tensor<f32>
    %y6 = tensor.collapse_shape %b_y [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
    %e = tensor.empty() : tensor<6xf32>
    %sb = linalg.broadcast ins(%s : tensor<f32>) outs(%e : tensor<6xf32>) dimensions = [0]
    %out = arith.addf %sb, %y6 : tensor<6xf32>
    cfb.yield %out : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
