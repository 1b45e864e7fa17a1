// Row-wise work over one instance dim is one block, whatever it reads once a call: a product with a
// parameter, a bias, a host scalar. Its length is an operand, and destinations are made inside.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<8x4xf32>>) : tensor<8x4xf32>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>, %[[B:.*]]: tensor<4xf32>, %[[S:.*]]: f32)
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[R:.*]] = cfb.block "main"(%[[N]], %[[X]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-SAME: attributes {leading = {{\[\[}}@dim.0], [], [], []], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit rows>}
// CHECK: linalg.matmul
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: cfb.yield
// CHECK-NOT: cfb.block
// CHECK: return %[[R]]
func.func @main(%x: tensor<?x8xf32>, %b: tensor<4xf32>, %s: f32) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %w = ml_program.global_load_const @w : tensor<8x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%z : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<?x4xf32>) dimensions = [0]
  %a = arith.addf %p, %r : tensor<?x4xf32>
  %t = tensor.from_elements %s : tensor<f32>
  %u = linalg.broadcast ins(%t : tensor<f32>) outs(%e : tensor<?x4xf32>) dimensions = [0, 1]
  %m = arith.mulf %a, %u : tensor<?x4xf32>
  return %m : tensor<?x4xf32>
}
