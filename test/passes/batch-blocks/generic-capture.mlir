// The body of a `linalg.generic` may use a constant that stands in the block around it, as the
// canonicaliser leaves one for the index of a dim of length 1; the kernel has its own copy.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: linalg.generic
// CHECK: , %[[ZERO]], %out
func.func @f(%x: tensor<1xf32>, %best: tensor<f32>, %at: tensor<i32>) -> tensor<i32> {
  %r = cfb.block "f"(%x, %best, %at) : (tensor<1xf32>, tensor<f32>, tensor<i32>) -> (tensor<i32>)
      attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%y: tensor<1xf32>, %b: tensor<f32>, %i: tensor<i32>):
    %zero = arith.constant 0 : i32
    %a:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>],
                           iterator_types = ["reduction"]}
        ins(%y : tensor<1xf32>) outs(%b, %i : tensor<f32>, tensor<i32>) {
    ^bb0(%in: f32, %out: f32, %index: i32):
      %c = arith.cmpf ogt, %in, %out : f32
      %v = arith.select %c, %in, %out : f32
      %k = arith.select %c, %zero, %index : i32
      linalg.yield %v, %k : f32, i32
    } -> (tensor<f32>, tensor<i32>)
    cfb.yield %a#1 : tensor<i32>
  }
  return %r : tensor<i32>
}
