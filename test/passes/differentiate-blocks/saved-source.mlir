// Of several values that backward reads and that are arithmetic on one that is dear to make, this one is saved: of
// `(2 t) * (3 t)` with `t = sin(x)` it, and neither of its multiples.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {cfb.entry} {
  // CHECK: cfb.block "main"
  // CHECK-SAME: saved = 1 : i64
  %h = cfb.block "main"(%x) : (tensor<4xf32>) -> (tensor<4xf32>)
      attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%a: tensor<4xf32>):
    %two = arith.constant dense<2.0> : tensor<4xf32>
    %three = arith.constant dense<3.0> : tensor<4xf32>
    // CHECK: %[[SIN:.*]] = math.sin
    %t = math.sin %a : tensor<4xf32>
    %u = arith.mulf %t, %two : tensor<4xf32>
    %v = arith.mulf %t, %three : tensor<4xf32>
    // CHECK: %[[P:.*]] = arith.mulf
    %p = arith.mulf %u, %v : tensor<4xf32>
    // CHECK: cfb.yield %{{.*}}, %[[SIN]]
    cfb.yield %p : tensor<4xf32>
  }
  return %h : tensor<4xf32>
}

// CHECK-LABEL: func.func @main$gradient$0(
// CHECK-NOT: math.sin
// CHECK: return
