// A list is taken apart two elements at a time: what stands before the call and behind it is in each arm, and what the
// function knew as its argument is what the call gave. The call that is left is that for the rest of the rest.
// RUN: %batch-opt %s --unroll-recursion --verify-diagnostics | %FileCheck %s

cfb.adt @List ["End", "Item"] [[], [tensor<4xf32>, !cfb.adt<@List>]]

// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[XS:[a-z0-9]*]]: !cfb.adt<@List>, %[[H:[a-z0-9]*]]: tensor<4xf32>
// CHECK: cfb.match %[[XS]]
// CHECK-NEXT: cfb.yield %[[H]]
// CHECK: ^bb0(%[[X:[a-z0-9]*]]: tensor<4xf32>, %[[REST:[a-z0-9]*]]: !cfb.adt<@List>):
// CHECK-NEXT: %[[IN:.*]] = cfb.match %[[REST]]
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[X]], %[[H]]
// CHECK-NEXT: %[[B:.*]] = math.tanh %[[A]]
// CHECK-NEXT: cfb.yield %[[B]]
// CHECK: ^bb0(%[[Y:[a-z0-9]*]]: tensor<4xf32>, %[[FURTHER:[a-z0-9]*]]: !cfb.adt<@List>):
// CHECK-NEXT: %[[C:.*]] = arith.addf %[[X]], %[[H]]
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[Y]], %[[C]]
// CHECK-NEXT: %[[E:.*]] = func.call @f(%[[FURTHER]], %[[D]])
// CHECK-NEXT: %[[F:.*]] = math.tanh %[[E]]
// CHECK-NEXT: %[[G:.*]] = math.tanh %[[F]]
// CHECK-NEXT: cfb.yield %[[G]]
// CHECK: cfb.yield %[[IN]]
// expected-remark @+1 {{`f` is unrolled: a call computes its children as well, in 3 arms where there were 2}}
func.func private @f(%xs: !cfb.adt<@List>, %h: tensor<4xf32>) -> tensor<4xf32> attributes {no_inline} {
  %r = cfb.match %xs : !cfb.adt<@List> -> (tensor<4xf32>) ({
    cfb.yield %h : tensor<4xf32>
  }, {
  ^bb0(%x: tensor<4xf32>, %rest: !cfb.adt<@List>):
    %n = arith.addf %x, %h : tensor<4xf32>
    %c = func.call @f(%rest, %n) : (!cfb.adt<@List>, tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %c : tensor<4xf32>
    cfb.yield %t : tensor<4xf32>
  })
  return %r : tensor<4xf32>
}
