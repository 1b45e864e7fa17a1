// Products at one index are one choice with what lies between them; a product of all rows is in no branch,
// and what needs both stands behind. Another index is a choice of its own.
// RUN: %batch-opt %s --share-slices --canonicalize --cse | %FileCheck %s

ml_program.global private @u(#ml_program.extern<tensor<2x64x64xf32>>) : tensor<2x64x64xf32>
ml_program.global private @w(#ml_program.extern<tensor<2x64x64xf32>>) : tensor<2x64x64xf32>
ml_program.global private @o(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>

// CHECK-LABEL: func.func @one_choice
// CHECK-SAME: (%[[X:.*]]: tensor<64xf32>, %[[K:.*]]: i32)
// CHECK: %[[R:.*]] = scf.if
// CHECK: linalg.vecmat ins(%[[X]],
// CHECK: math.tanh
// CHECK: linalg.vecmat
// CHECK: } else {
// CHECK: linalg.vecmat
// CHECK: math.tanh
// CHECK: linalg.vecmat
// CHECK: }
// CHECK: %[[O:.*]] = linalg.vecmat ins(%[[R]],
// CHECK-NOT: linalg.vecmat
// CHECK: return %[[O]]
func.func @one_choice(%x: tensor<64xf32>, %k: i32) -> tensor<64xf32> {
  %u = ml_program.global_load_const @u : tensor<2x64x64xf32>
  %w = ml_program.global_load_const @w : tensor<2x64x64xf32>
  %o = ml_program.global_load_const @o : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %m = cfb.lookup %u[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
  %n = cfb.lookup %w[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
  %p = linalg.vecmat ins(%x, %m : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %t = math.tanh %p : tensor<64xf32>
  %q = linalg.vecmat ins(%t, %n : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.vecmat ins(%q, %o : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// The product of all rows waits for the first choice, and the second choice for it.
// CHECK-LABEL: func.func @between
// CHECK: %[[A:.*]] = scf.if
// CHECK: %[[O:.*]] = linalg.vecmat ins(%[[A]],
// CHECK: %[[B:.*]] = scf.if
// CHECK: linalg.vecmat ins(%[[O]],
// CHECK: } else {
// CHECK: return %[[B]]
func.func @between(%x: tensor<64xf32>, %k: i32) -> tensor<64xf32> {
  %u = ml_program.global_load_const @u : tensor<2x64x64xf32>
  %w = ml_program.global_load_const @w : tensor<2x64x64xf32>
  %o = ml_program.global_load_const @o : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %m = cfb.lookup %u[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
  %n = cfb.lookup %w[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
  %p = linalg.vecmat ins(%x, %m : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.vecmat ins(%p, %o : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %q = linalg.vecmat ins(%r, %n : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  return %q : tensor<64xf32>
}

// What needs the first product's result stands among the operations of the choice, and moves behind it.
// CHECK-LABEL: func.func @moved
// CHECK-SAME: (%[[X:.*]]: tensor<64xf32>,
// CHECK: %[[R:.*]]:2 = scf.if
// CHECK: } else {
// CHECK: }
// CHECK: %[[O:.*]] = linalg.vecmat ins(%[[R]]#0,
// CHECK: return %[[O]], %[[R]]#1
func.func @moved(%x: tensor<64xf32>, %k: i32) -> (tensor<64xf32>, tensor<64xf32>) {
  %u = ml_program.global_load_const @u : tensor<2x64x64xf32>
  %w = ml_program.global_load_const @w : tensor<2x64x64xf32>
  %o = ml_program.global_load_const @o : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %m = cfb.lookup %u[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
  %n = cfb.lookup %w[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
  %p = linalg.vecmat ins(%x, %m : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.vecmat ins(%p, %o : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %q = linalg.vecmat ins(%p, %n : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  return %r, %q : tensor<64xf32>, tensor<64xf32>
}
