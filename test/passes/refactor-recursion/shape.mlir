// A call from outside has no zeros of a length that it does not know.
// RUN: %batch-opt %s --refactor-recursion --verify-diagnostics | %FileCheck %s

cfb.adt @Tree ["Tree"] [[!cfb.array<!cfb.adt<@Tree>>]]

// CHECK-LABEL: func.func private @cell(
// CHECK-SAME: %{{[a-z0-9]*}}: !cfb.adt<@Tree>, %{{[a-z0-9]*}}: tensor<?x4xf32>) -> tensor<4xf32>
// expected-remark @+1 {{`cell` is not refactored: whoever calls it from outside does not know the shapes of what it would be given}}
func.func private @cell(%t: !cfb.adt<@Tree>, %y: tensor<?x4xf32>) -> tensor<4xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<4xf32>) ({
  ^bb0(%children: !cfb.array<!cfb.adt<@Tree>>):
    %states = cfb.map %children : (!cfb.array<!cfb.adt<@Tree>>) -> !cfb.array<tensor<4xf32>> {
    ^bb0(%child: !cfb.adt<@Tree>):
      %h = func.call @cell(%child, %y) : (!cfb.adt<@Tree>, tensor<?x4xf32>) -> tensor<4xf32>
      cfb.yield %h : tensor<4xf32>
    }
    %edges = cfb.map %states : (!cfb.array<tensor<4xf32>>) -> !cfb.array<tensor<4xf32>> {
    ^bb0(%h: tensor<4xf32>):
      %e = linalg.reduce { arith.addf } ins(%y : tensor<?x4xf32>) outs(%h : tensor<4xf32>) dimensions = [0]
      cfb.yield %e : tensor<4xf32>
    }
    %s = cfb.reduce_rows %edges init(%zero) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %n = arith.addf %a, %b : f32
      cfb.yield %n : f32
    }
    cfb.yield %s : tensor<4xf32>
  })
  return %r : tensor<4xf32>
}
