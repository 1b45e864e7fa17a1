// A host scalar differs by instance: it becomes one number a row.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: tensor<?x4xf32>, %[[S:.*]]: tensor<?xf32>):
// CHECK: linalg.broadcast ins(%[[S]] : tensor<?xf32>) outs(%{{.*}} : tensor<?x4xf32>) dimensions = [1]
// CHECK: cfb.record @f_0(%{{.*}}, %{{.*}}) : (!cfb.lazy<tensor<4xf32>>, f32)
func.func @f(%x: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %r = cfb.block "f"(%x, %s) : (tensor<4xf32>, f32) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_s: f32):
    %t = tensor.from_elements %b_s : tensor<f32>
    %e = tensor.empty() : tensor<4xf32>
    %sb = linalg.broadcast ins(%t : tensor<f32>) outs(%e : tensor<4xf32>) dimensions = [0]
    %out = arith.mulf %b_x, %sb : tensor<4xf32>
    cfb.yield %out : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
