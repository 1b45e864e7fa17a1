// By operator, masks of lengths alone are made in each block that uses them, but a concatenation of them is
// stored: what reads it, a sum for one, goes on from one of its parts to the next.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[JOINED:[0-9]+]] = cfb.block "main"
// CHECK: linalg.index
// CHECK: math.tanh
// CHECK: tensor.concat
// CHECK: %[[SINES:[0-9]+]] = cfb.block "main"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %[[JOINED]])
// CHECK-NOT: tensor.concat
// CHECK: math.sin
// CHECK: cfb.block "main"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %[[SINES]])
// CHECK-NOT: tensor.concat
// CHECK: linalg.reduce
module attributes {cfb.granularity = #cfb<granularity operator>} {
func.func @main(%n: index, %m: index) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty(%n, %m) : tensor<1x?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %places = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%e3 : tensor<1x?x?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 1 : index
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    linalg.yield %f : f32
  } -> tensor<1x?x?xf32>
  %t = math.tanh %places : tensor<1x?x?xf32>
  %c = tensor.concat dim(0) %places, %t : (tensor<1x?x?xf32>, tensor<1x?x?xf32>) -> tensor<2x?x?xf32>
  %d = math.sin %c : tensor<2x?x?xf32>
  %s = linalg.reduce { arith.addf } ins(%d : tensor<2x?x?xf32>) outs(%z : tensor<?x?xf32>) dimensions = [0]
  return %s : tensor<?x?xf32>
}
}
