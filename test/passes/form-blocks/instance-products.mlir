// What a product over instance dims makes, rows of known length, is stored before another product is made
// of it: a kernel over calls stores nothing between its operations, so it would be computed anew for each
// element that is read. Scores between two products are not stored.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[A:[0-9]+]] = cfb.block "main"(%{{[a-z0-9_]+}}, %arg0)
// CHECK-SAME: unit = #cfb<unit calls>
// CHECK: linalg.matmul
// CHECK: arith.mulf
// CHECK: linalg.matmul
// CHECK: cfb.yield
// CHECK: cfb.block "main"(%{{[a-z0-9_]+}}, %[[A]], %arg0)
// CHECK-SAME: unit = #cfb<unit calls>
// CHECK: linalg.transpose
// CHECK: linalg.matmul
// CHECK: arith.mulf
// CHECK: linalg.matmul
// CHECK: return
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {cfb.argument_dims = [["n"]]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e2 = tensor.empty(%n, %n) : tensor<?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %e1 = tensor.empty(%n) : tensor<?x8xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %et = tensor.empty(%n) : tensor<8x?xf32>
  %xt = linalg.transpose ins(%x : tensor<?x8xf32>) outs(%et : tensor<8x?xf32>) permutation = [1, 0]
  %s = linalg.matmul ins(%x, %xt : tensor<?x8xf32>, tensor<8x?xf32>) outs(%z2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sm = arith.mulf %s, %s : tensor<?x?xf32>
  %a = linalg.matmul ins(%sm, %x : tensor<?x?xf32>, tensor<?x8xf32>) outs(%z1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %at = linalg.transpose ins(%a : tensor<?x8xf32>) outs(%et : tensor<8x?xf32>) permutation = [1, 0]
  %u = linalg.matmul ins(%x, %at : tensor<?x8xf32>, tensor<8x?xf32>) outs(%z2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %um = arith.mulf %u, %u : tensor<?x?xf32>
  %b = linalg.matmul ins(%um, %x : tensor<?x?xf32>, tensor<?x8xf32>) outs(%z1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
