// A chain over two instance dims, from a product to a product, is one block of whole calls, and the
// row-wise work before and after it has blocks of its own. Two chains are two blocks, although both use
// one mask: each makes it for itself.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[T:[0-9]+]] = cfb.block "main"
// CHECK-SAME: unit = #cfb<unit rows>
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.tanh
// CHECK: %[[A:[0-9]+]] = cfb.block "main"(%{{[a-z0-9_]+}}, %[[T]], %arg1)
// CHECK-SAME: attributes {leading = {{\[\[}}@dim.0], [@dim.0]], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit calls>}
// CHECK: linalg.index
// CHECK: linalg.matmul
// CHECK: arith.mulf
// CHECK: linalg.matmul
// CHECK: %[[B:[0-9]+]] = cfb.block "main"
// CHECK-SAME: unit = #cfb<unit calls>
// CHECK: linalg.index
// CHECK: linalg.matmul
// CHECK: arith.mulf
// CHECK: linalg.matmul
// CHECK: cfb.block "main"(%{{[a-z0-9_]+}}, %[[A]], %[[B]])
// CHECK-SAME: unit = #cfb<unit rows>
// CHECK: arith.addf
func.func @main(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {cfb.argument_dims = [["n"], ["n"]]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e2 = tensor.empty(%n, %n) : tensor<?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %e1 = tensor.empty(%n) : tensor<?x8xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %et = tensor.empty(%n) : tensor<8x?xf32>
  %mask = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e2 : tensor<?x?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    linalg.yield %f : f32
  } -> tensor<?x?xf32>
  %t = math.tanh %x : tensor<?x8xf32>
  %tt = linalg.transpose ins(%t : tensor<?x8xf32>) outs(%et : tensor<8x?xf32>) permutation = [1, 0]
  %s = linalg.matmul ins(%y, %tt : tensor<?x8xf32>, tensor<8x?xf32>) outs(%z2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sm = arith.mulf %s, %mask : tensor<?x?xf32>
  %a = linalg.matmul ins(%sm, %t : tensor<?x?xf32>, tensor<?x8xf32>) outs(%z1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %yt = linalg.transpose ins(%y : tensor<?x8xf32>) outs(%et : tensor<8x?xf32>) permutation = [1, 0]
  %u = linalg.matmul ins(%t, %yt : tensor<?x8xf32>, tensor<8x?xf32>) outs(%z2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %um = arith.mulf %u, %mask : tensor<?x?xf32>
  %b = linalg.matmul ins(%um, %y : tensor<?x?xf32>, tensor<?x8xf32>) outs(%z1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = arith.addf %a, %b : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
