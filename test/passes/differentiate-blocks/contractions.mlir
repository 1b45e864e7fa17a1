// Of a sum of products over a loop, each side's cotangent is such a sum, over the loop that the side lacks:
// here over the columns of the result, and over its rows.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s

#rows = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#columns = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#result = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

func.func @main(%x: tensor<2x5x3xf32>, %y: tensor<2x3x4xf32>) -> tensor<2x5x4xf32> attributes {cfb.entry} {
  %h = cfb.block "main"(%x, %y) : (tensor<2x5x3xf32>, tensor<2x3x4xf32>) -> (tensor<2x5x4xf32>)
      attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%a: tensor<2x5x3xf32>, %b: tensor<2x3x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x5x4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
    %p = linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<2x5x3xf32>, tensor<2x3x4xf32>) outs(%z : tensor<2x5x4xf32>) {
    ^bb0(%l: f32, %r: f32, %o: f32):
      %m = arith.mulf %l, %r : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x5x4xf32>
    cfb.yield %p : tensor<2x5x4xf32>
  }
  return %h : tensor<2x5x4xf32>
}

// CHECK-LABEL: func.func @main$gradient$0(
// CHECK: %[[G:[a-z0-9]*]]: tensor<2x5x4xf32>) -> (tensor<2x5x3xf32>, tensor<2x3x4xf32>)
// CHECK-SAME: results = [#cfb.part<operand 0>, #cfb.part<operand 1>]
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<2x5x4xf32>, tensor<2x4x3xf32>) outs({{.*}} : tensor<2x5x3xf32>)
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<2x3x5xf32>, tensor<2x5x4xf32>) outs({{.*}} : tensor<2x3x4xf32>)
