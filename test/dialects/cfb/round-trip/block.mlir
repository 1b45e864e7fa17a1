// A block with the reuse of its operands, and one without operands.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @block
func.func @block(%x: tensor<3xf32>, %s: f32) {
  // CHECK: cfb.block "cell"(%{{.*}}, %{{.*}}) : (tensor<3xf32>, f32) -> (tensor<3xf32>, tensor<3xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<3xf32>, %{{.*}}: f32):
  // CHECK-NEXT: cfb.yield %[[A]], %[[A]] : tensor<3xf32>, tensor<3xf32>
  %0:2 = cfb.block "cell" (%x, %s) : (tensor<3xf32>, f32) -> (tensor<3xf32>, tensor<3xf32>)
      attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%a: tensor<3xf32>, %b: f32):
    cfb.yield %a, %a : tensor<3xf32>, tensor<3xf32>
  }
  // CHECK: cfb.block "start"() : () -> tensor<3xf32> {
  %1 = cfb.block "start"() : () -> tensor<3xf32> {
    %z = arith.constant dense<0.0> : tensor<3xf32>
    cfb.yield %z : tensor<3xf32>
  }
  return
}
