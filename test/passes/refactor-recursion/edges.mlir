// What a node makes of each child's result is a result of the call for the child, whose arms compute it where the
// child's own result is, from an argument more. What is made of the node alone moves before the recursion. A result
// that only the moved part used is gone, and callers from outside give zeros.
// RUN: %batch-opt %s --refactor-recursion --verify-diagnostics | %FileCheck %s

cfb.adt @Tree ["Leaf", "Node"] [[tensor<4xf32>], [tensor<4xf32>, !cfb.array<!cfb.adt<@Tree>>]]

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[T:[a-z0-9]*]]: !cfb.adt<@Tree>
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[R:.*]]:2 = call @cell(%[[T]], %[[ZERO]])
// CHECK: return %[[R]]#0
func.func @main(%t: !cfb.adt<@Tree>) -> tensor<4xf32> {
  %r:2 = call @cell(%t) : (!cfb.adt<@Tree>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func private @cell(
// CHECK-SAME: %[[TREE:[a-z0-9]*]]: !cfb.adt<@Tree>, %[[G:[a-z0-9]*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: %[[RESULTS:.*]]:2 = cfb.match %[[TREE]]
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>):
// CHECK: %[[C:.*]] = math.exp %[[X]]
// CHECK: %[[E:.*]] = arith.mulf %[[C]], %[[G]]
// CHECK: cfb.yield %[[X]], %[[E]]
// CHECK: ^bb0(%[[Y:[a-z0-9]*]]: tensor<4xf32>, %[[CHILDREN:[a-z0-9]*]]: !cfb.array<!cfb.adt<@Tree>>):
// CHECK-NEXT: %[[GATE:.*]] = math.tanh %[[Y]]
// CHECK-NEXT: %[[LIST:.*]] = cfb.map %[[CHILDREN]]
// CHECK-NEXT: ^bb0(%[[CHILD:.*]]: !cfb.adt<@Tree>):
// CHECK-NEXT: %[[OF:.*]]:2 = func.call @cell(%[[CHILD]], %[[GATE]])
// CHECK-NEXT: cfb.yield %[[OF]]#0, %[[OF]]#1
// CHECK: %[[HS:.*]] = cfb.map %[[LIST]]
// CHECK-NEXT: ^bb0(%[[H:[a-z0-9]*]]: tensor<4xf32>, %{{[a-z0-9]*}}: tensor<4xf32>):
// CHECK-NEXT: cfb.yield %[[H]] :
// CHECK: %[[EDGES:.*]] = cfb.map %[[LIST]]
// CHECK-NEXT: ^bb0(%{{[a-z0-9]*}}: tensor<4xf32>, %[[EDGE:[a-z0-9]*]]: tensor<4xf32>):
// CHECK-NEXT: cfb.yield %[[EDGE]] :
// CHECK: %[[S:.*]] = cfb.reduce_rows %[[HS]]
// CHECK: %[[K:.*]] = cfb.reduce_rows %[[EDGES]]
// CHECK: %[[LAST:.*]] = arith.mulf %[[K]], %[[G]]
// CHECK: cfb.yield %[[S]], %[[LAST]]
// CHECK: return %[[RESULTS]]#0, %[[RESULTS]]#1
// expected-remark @+1 {{`cell` is refactored: a call computes what its caller makes of the result as well, in one launch for a level of the recursion where there were two}}
func.func private @cell(%t: !cfb.adt<@Tree>) -> (tensor<4xf32>, tensor<4xf32>) attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %r:2 = cfb.match %t : !cfb.adt<@Tree> -> (tensor<4xf32>, tensor<4xf32>) ({
  ^bb0(%x: tensor<4xf32>):
    %c = math.exp %x : tensor<4xf32>
    cfb.yield %x, %c : tensor<4xf32>, tensor<4xf32>
  }, {
  ^bb0(%x: tensor<4xf32>, %children: !cfb.array<!cfb.adt<@Tree>>):
    %states = cfb.map %children : (!cfb.array<!cfb.adt<@Tree>>) -> !cfb.array<tuple<tensor<4xf32>, tensor<4xf32>>> {
    ^bb0(%child: !cfb.adt<@Tree>):
      %of:2 = func.call @cell(%child) : (!cfb.adt<@Tree>) -> (tensor<4xf32>, tensor<4xf32>)
      cfb.yield %of#0, %of#1 : tensor<4xf32>, tensor<4xf32>
    }
    %gate = math.tanh %x : tensor<4xf32>
    %hs = cfb.map %states : (!cfb.array<tuple<tensor<4xf32>, tensor<4xf32>>>) -> !cfb.array<tensor<4xf32>> {
    ^bb0(%h: tensor<4xf32>, %c: tensor<4xf32>):
      cfb.yield %h : tensor<4xf32>
    }
    %edges = cfb.map %states : (!cfb.array<tuple<tensor<4xf32>, tensor<4xf32>>>) -> !cfb.array<tensor<4xf32>> {
    ^bb0(%h: tensor<4xf32>, %c: tensor<4xf32>):
      %e = arith.mulf %c, %gate : tensor<4xf32>
      cfb.yield %e : tensor<4xf32>
    }
    %s = cfb.reduce_rows %hs init(%zero) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %n = arith.addf %a, %b : f32
      cfb.yield %n : f32
    }
    %k = cfb.reduce_rows %edges init(%zero) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %n = arith.addf %a, %b : f32
      cfb.yield %n : f32
    }
    cfb.yield %s, %k : tensor<4xf32>, tensor<4xf32>
  })
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
