// A product each of whose elements is read many times, as a sort compares them, has a block of its own:
// computed anew, an element might not be equal to itself.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK: %[[SCORES:[0-9]+]] = cfb.block "main"
// CHECK: linalg.matmul
// CHECK: arith.mulf
// CHECK: cfb.yield
// CHECK: cfb.block "main"({{.*}}%[[SCORES]])
// CHECK-NOT: linalg.matmul
// CHECK: arith.cmpf
func.func @main(%x: tensor<?x4xf32>, %y: tensor<4x?xf32>, %n: index) -> tensor<?x?xi32>
    attributes {cfb.argument_dims = [["n"], ["n"]]} {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %square = tensor.empty(%n, %n) : tensor<?x?xf32>
  %cube = tensor.empty(%n, %n, %n) : tensor<?x?x?xf32>
  %counts = tensor.empty(%n, %n) : tensor<?x?xi32>
  %zeros = linalg.fill ins(%zero : f32) outs(%square : tensor<?x?xf32>) -> tensor<?x?xf32>
  %start = linalg.fill ins(%none : i32) outs(%counts : tensor<?x?xi32>) -> tensor<?x?xi32>
  %scores = linalg.matmul ins(%x, %y : tensor<?x4xf32>, tensor<4x?xf32>) outs(%zeros : tensor<?x?xf32>) -> tensor<?x?xf32>
  %squares = arith.mulf %scores, %scores : tensor<?x?xf32>
  %left = linalg.broadcast ins(%squares : tensor<?x?xf32>) outs(%cube : tensor<?x?x?xf32>) dimensions = [1]
  %right = linalg.broadcast ins(%squares : tensor<?x?xf32>) outs(%cube : tensor<?x?x?xf32>) dimensions = [0]
  %less = arith.cmpf olt, %left, %right : tensor<?x?x?xf32>
  %ones = arith.extui %less : tensor<?x?x?xi1> to tensor<?x?x?xi32>
  %rank = linalg.reduce { arith.addi } ins(%ones : tensor<?x?x?xi32>) outs(%start : tensor<?x?xi32>) dimensions = [1]
  return %rank : tensor<?x?xi32>
}
