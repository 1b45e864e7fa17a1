// A recursion may go on in the phase of the one before it, but not where it needs what is computed
// between them, which comes in the phase after.
// RUN: %batch-opt %s --find-phases | %FileCheck %s

func.func private @cell(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @cell(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.*]] = call @cell
// CHECK-NEXT: call @cell(%[[A]])
// CHECK-NEXT: cfb.phase 1
// CHECK-NEXT: %[[B:.*]] = cfb.block "between"(%[[A]])
// CHECK: call @cell(%[[B]])
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {cfb.entry} {
  %a = func.call @cell(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = cfb.block "between"(%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    cfb.yield %v : tensor<4xf32>
  }
  %c = func.call @cell(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %d = func.call @cell(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %c, %d : tensor<4xf32>, tensor<4xf32>
}
