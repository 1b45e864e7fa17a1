// Dims of arguments that go by one name have one length; a dim without a name has its own.
// RUN: %batch-opt %s --resolve-dims | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?x?xf32>, %{{[a-z0-9]*}}: tensor<?xf32>, %[[C:[a-z0-9]*]]: tensor<?xf32>)
// CHECK-DAG: %[[N:.*]] = tensor.dim %[[A]]
// CHECK-DAG: %[[M:.*]] = tensor.dim %[[C]]
// CHECK-NOT: tensor.dim
// CHECK: return %[[N]], %[[N]], %[[M]]
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?xf32>, %c: tensor<?xf32>) -> (index, index, index)
    attributes {cfb.argument_dims = [["n", "n"], ["n"], ["_"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = tensor.dim %a, %c1 : tensor<?x?xf32>
  %m = tensor.dim %b, %c0 : tensor<?xf32>
  %n = tensor.dim %c, %c0 : tensor<?xf32>
  return %l, %m, %n : index, index, index
}
