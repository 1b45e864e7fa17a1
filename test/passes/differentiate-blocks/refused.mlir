// What has no derivative refuses the gradient that reaches it, and nothing else.
// RUN: %batch-opt %s --differentiate-blocks | %FileCheck %s

func.func @main(%x: !cfb.array<tensor<2xf32>>) -> tensor<2xf32> attributes {cfb.entry} {
  // CHECK: gradients = ["main$gradient$0"]
  %h = cfb.block "main"(%x) : (!cfb.array<tensor<2xf32>>) -> (tensor<2xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%a: !cfb.array<tensor<2xf32>>):
    %one = arith.constant dense<1.0> : tensor<2xf32>
    %r = cfb.reduce_rows %a init(%one) : (!cfb.array<tensor<2xf32>>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%acc: f32, %e: f32):
      %n = arith.mulf %acc, %e : f32
      cfb.yield %n : f32
    }
    cfb.yield %r : tensor<2xf32>
  }
  return %h : tensor<2xf32>
}

// CHECK: func.func @main$gradient$0() attributes {cfb.gradient = {refused = "{{.*}}refused.mlir:9:{{.*}}a fold of a list other than a sum"}}
