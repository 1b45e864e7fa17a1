// A number as a tensor, read by rows at two depths: no block over rows has it as a result, which would
// be one without rows beside others. It is a block of its own.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[NUMBER:.*]] = cfb.block "main"(%arg0) : (f32) -> tensor<f32> {
// CHECK: tensor.from_elements
// CHECK-NEXT: cfb.yield
// CHECK: %[[FIRST:.*]] = cfb.block "main"(%dim, %[[NUMBER]], %arg1)
// CHECK-SAME: rows = [@dim.0], unit = #cfb<unit rows>
// CHECK: %[[SUM:.*]] = cfb.block "main"(%dim_1, %[[FIRST]])
// CHECK-SAME: unit = #cfb<unit calls>
// CHECK: cfb.block "main"(%dim, %[[SUM]], %[[NUMBER]])
// CHECK-SAME: unit = #cfb<unit rows>
func.func @main(%c: f32, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %number = tensor.from_elements %c : tensor<f32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %rows = linalg.broadcast ins(%number : tensor<f32>) outs(%empty : tensor<?xf32>) dimensions = [0]
  %first = arith.divf %x, %rows : tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %scalar = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  %sum = linalg.reduce { arith.addf } ins(%first : tensor<?xf32>) outs(%start : tensor<f32>) dimensions = [0]
  %sums = linalg.broadcast ins(%sum : tensor<f32>) outs(%empty : tensor<?xf32>) dimensions = [0]
  %again = linalg.broadcast ins(%number : tensor<f32>) outs(%empty : tensor<?xf32>) dimensions = [0]
  %quotient = arith.divf %sums, %again : tensor<?xf32>
  return %first, %quotient : tensor<?xf32>, tensor<?xf32>
}
