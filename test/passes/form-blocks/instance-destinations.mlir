// A destination that a region shares with what is around it is made in that region again, since a
// block is given lengths, not what it writes to; the length itself is an operand.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = tensor.dim
// CHECK-NOT: linalg.fill
// CHECK: scf.if
// CHECK: cfb.block "main"(%[[N]],
// CHECK: tensor.empty
// CHECK: linalg.fill
// CHECK: linalg.broadcast
// CHECK: cfb.yield
// CHECK: scf.yield
func.func @main(%x: tensor<?x8xf32>, %b: tensor<8xf32>, %p: i1) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = scf.if %p -> (tensor<?x8xf32>) {
    %w = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : tensor<?x8xf32>) dimensions = [0]
    %s = arith.addf %x, %w : tensor<?x8xf32>
    %t = arith.mulf %s, %f : tensor<?x8xf32>
    scf.yield %t : tensor<?x8xf32>
  } else {
    scf.yield %x : tensor<?x8xf32>
  }
  return %r : tensor<?x8xf32>
}
