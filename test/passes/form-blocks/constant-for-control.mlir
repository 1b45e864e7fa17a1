// A constant that is not a plain `arith.constant` can serve blocks, which copy it, and control, which
// needs it computed: the block made for control must not drag the other users along.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %ones = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[R:.*]]:2 = cfb.block "main"
  // CHECK-COUNT-2: linalg.fill
  // CHECK: arith.addf
  // CHECK: cfb.yield
  %s = arith.addf %x, %ones : tensor<4xf32>
  // CHECK: scf.if
  // CHECK-NEXT: cfb.block "main"
  // CHECK: linalg.fill
  // CHECK: arith.mulf
  %r = scf.if %c -> (tensor<4xf32>) {
    %p = arith.mulf %s, %ones : tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  } else {
    // CHECK: else
    // CHECK-NEXT: scf.yield %[[R]]#0
    scf.yield %ones : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
