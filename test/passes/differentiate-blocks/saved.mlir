// What backward reads of the inside of a block and is dear to make is a result of the block that nothing else
// reads: of `tanh(x) * y` the tanh, and not what is added to it.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {cfb.entry} {
  // CHECK: %[[H:.*]]:2 = cfb.block "main"
  // CHECK-SAME: saved = 1 : i64
  %h = cfb.block "main"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
      attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    // CHECK: %[[TANH:.*]] = math.tanh
    %t = math.tanh %a : tensor<4xf32>
    %s = arith.addf %t, %b : tensor<4xf32>
    // CHECK: %[[P:.*]] = arith.mulf
    %p = arith.mulf %s, %b : tensor<4xf32>
    // CHECK: cfb.yield %[[P]], %[[TANH]]
    cfb.yield %p : tensor<4xf32>
  }
  // CHECK: return %[[H]]#0
  return %h : tensor<4xf32>
}

// CHECK-LABEL: func.func @main$gradient$0(
// CHECK-SAME: arguments = [#cfb.part<operand 0>, #cfb.part<operand 1>, #cfb.part<result 0>, #cfb.part<result 1>, #cfb.part<cotangent 0>]
// CHECK-NOT: math.tanh
// CHECK: return
