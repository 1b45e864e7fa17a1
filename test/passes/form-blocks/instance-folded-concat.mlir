// A concatenation that a fold of any kind reads is a call of its own, since what is added up may lie in
// several of its parts and a kernel reads one part at a time.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @product
// CHECK: %[[JOINED:[0-9]+]] = cfb.block "product"
// CHECK: tensor.concat
// CHECK: cfb.block "product"(%{{[a-z0-9_]+}}, %[[JOINED]]
// CHECK: linalg.matmul
// CHECK-NOT: cfb.block
// CHECK: return
func.func @product(%x: tensor<3x?xf32>, %y: tensor<4x?xf32>, %w: tensor<?x5xf32>) -> tensor<7x5xf32>
    attributes {cfb.argument_dims = [["", "n"], ["", "n"], ["n"]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %c = tensor.concat dim(0) %x, %y : (tensor<3x?xf32>, tensor<4x?xf32>) -> tensor<7x?xf32>
  %p = linalg.matmul ins(%c, %w : tensor<7x?xf32>, tensor<?x5xf32>) outs(%z : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %p : tensor<7x5xf32>
}

// Its parts are made with it, those that are concatenations as well, and what is done to its elements is
// done where they are folded.
// CHECK-LABEL: func.func @nested
// CHECK: %[[JOINED:[0-9]+]] = cfb.block "nested"
// CHECK: tensor.concat
// CHECK: math.tanh
// CHECK: tensor.concat
// CHECK: cfb.block "nested"(%{{[a-z0-9_]+}}, %[[JOINED]]
// CHECK: math.sin
// CHECK: linalg.reduce
// CHECK-NOT: cfb.block
// CHECK: return
func.func @nested(%x: tensor<3x?x?xf32>, %y: tensor<4x?x?xf32>) -> tensor<?x?xf32>
    attributes {cfb.argument_dims = [["", "n", "m"], ["", "n", "m"]]} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c1 : tensor<3x?x?xf32>
  %m = tensor.dim %x, %c2 : tensor<3x?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %c = tensor.concat dim(0) %x, %y : (tensor<3x?x?xf32>, tensor<4x?x?xf32>) -> tensor<7x?x?xf32>
  %t = math.tanh %c : tensor<7x?x?xf32>
  %d = tensor.concat dim(0) %t, %x : (tensor<7x?x?xf32>, tensor<3x?x?xf32>) -> tensor<10x?x?xf32>
  %r = math.sin %d : tensor<10x?x?xf32>
  %s = linalg.reduce { arith.addf } ins(%r : tensor<10x?x?xf32>) outs(%z : tensor<?x?xf32>) dimensions = [0]
  return %s : tensor<?x?xf32>
}

// What no fold reads is made where it is used.
// CHECK-LABEL: func.func @elementwise
// CHECK: cfb.block
// CHECK: tensor.concat
// CHECK: math.tanh
// CHECK-NOT: cfb.block
// CHECK: return
func.func @elementwise(%x: tensor<3x?x?xf32>, %y: tensor<4x?x?xf32>) -> tensor<7x?x?xf32>
    attributes {cfb.argument_dims = [["", "n", "m"], ["", "n", "m"]]} {
  %c = tensor.concat dim(0) %x, %y : (tensor<3x?x?xf32>, tensor<4x?x?xf32>) -> tensor<7x?x?xf32>
  %t = math.tanh %c : tensor<7x?x?xf32>
  return %t : tensor<7x?x?xf32>
}
