// Instances leave a loop that decides after different flushes, and none waits for one that is still in
// it: the remark does not say that all of them come together, and the phase is marked for that.
// RUN: %batch-opt %s --find-phases --verify-diagnostics
// RUN: %batch-opt %s --find-phases | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: cfb.phase 1 {cfb.after_decision}
// CHECK-NEXT: cfb.block "last"
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {cfb.entry} {
  %r = scf.while (%h = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %c = cfb.block "go"(%h) : (tensor<4xf32>) -> tensor<i1> {
    ^bb0(%v: tensor<4xf32>):
      %yes = arith.constant dense<true> : tensor<i1>
      cfb.yield %yes : tensor<i1>
    }
    %d = cfb.force %c : tensor<i1> -> i1
    scf.condition(%d) %h : tensor<4xf32>
  } do {
  ^bb0(%h: tensor<4xf32>):
    %k = cfb.block "step"(%h) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%v: tensor<4xf32>):
      cfb.yield %v : tensor<4xf32>
    }
    scf.yield %k : tensor<4xf32>
  }
  // expected-remark @+1 {{phase 1 begins here: what follows waits for what comes before it in the instances that come here after the same flush}}
  %o = cfb.block "last"(%r) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    cfb.yield %v : tensor<4xf32>
  }
  return %o : tensor<4xf32>
}
