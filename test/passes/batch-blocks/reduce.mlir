// A reduction keeps its dims, one further.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: linalg.reduce { arith.addf } ins(%{{.*}} : tensor<?x3x4xf32>) outs(%{{.*}} : tensor<?x3xf32>) dimensions = [2]
func.func @f(%x: tensor<3x4xf32>) -> tensor<3xf32> {
  %r = cfb.block "f"(%x) : (tensor<3x4xf32>) -> (tensor<3xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%b_x: tensor<3x4xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %z = linalg.fill ins(%c : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %out = linalg.reduce { arith.addf } ins(%b_x : tensor<3x4xf32>) outs(%z : tensor<3xf32>) dimensions = [1]
    cfb.yield %out : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}
