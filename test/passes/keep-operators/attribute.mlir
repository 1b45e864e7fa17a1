// The choice is a fact of the module that a person can read and a later pass obeys.
// RUN: %batch-opt %s --keep-operators | %FileCheck %s
// RUN: %batch-opt %s --keep-operators --form-blocks | %FileCheck %s --check-prefix=BLOCKS

// CHECK: module attributes {cfb.granularity = #cfb<granularity operator>}
// BLOCKS-COUNT-2: cfb.block "main"
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = math.exp %x : tensor<4xf32>
  %r = math.tanh %e : tensor<4xf32>
  return %r : tensor<4xf32>
}
