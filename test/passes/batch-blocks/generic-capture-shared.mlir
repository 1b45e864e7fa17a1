// What all rows share stays as it is, and so does what its body uses from around it: the kernel has its
// own copies of both, since the block goes.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: linalg.generic
// CHECK: , %[[ZERO]], %out
// CHECK: cfb.yield
func.func @f(%x: tensor<1xi32>) -> tensor<1xi32> {
  %r = cfb.block "f"(%x) : (tensor<1xi32>) -> (tensor<1xi32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%y: tensor<1xi32>):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<1x1xf32>
    %ones = linalg.fill ins(%one : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
    %be = tensor.empty() : tensor<1xf32>
    %ie = tensor.empty() : tensor<1xi32>
    %a:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>],
                           iterator_types = ["parallel", "reduction"]}
        ins(%ones : tensor<1x1xf32>) outs(%be, %ie : tensor<1xf32>, tensor<1xi32>) {
    ^bb0(%in: f32, %out: f32, %index: i32):
      %c = arith.cmpf ogt, %in, %out : f32
      %v = arith.select %c, %in, %out : f32
      %k = arith.select %c, %zero, %index : i32
      linalg.yield %v, %k : f32, i32
    } -> (tensor<1xf32>, tensor<1xi32>)
    %s = arith.addi %y, %a#1 : tensor<1xi32>
    cfb.yield %s : tensor<1xi32>
  }
  return %r : tensor<1xi32>
}
