// An array that a block takes becomes a list a row of its kernel, and the record gets the array of
// handles; a start that all rows share is broadcast.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @node_0
// CHECK-NEXT: ^bb0(%[[ROWS:.*]]: index, %[[L:.*]]: !cfb.rows<tensor<4xf32>>):
// CHECK: %[[INIT:.*]] = linalg.broadcast
// CHECK: %[[S:.*]] = cfb.reduce_rows %[[L]] init(%[[INIT]]) : (!cfb.rows<tensor<4xf32>>, tensor<?x4xf32>) -> tensor<?x4xf32> {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.addf
// CHECK: cfb.yield %[[S]] : tensor<?x4xf32>

// CHECK-LABEL: func.func @node
// CHECK-SAME: %[[KIDS:.*]]: !cfb.array<!cfb.lazy<tensor<4xf32>>>
// CHECK: cfb.record @node_0(%[[KIDS]]) : (!cfb.array<!cfb.lazy<tensor<4xf32>>>) -> !cfb.lazy<tensor<4xf32>>
func.func @node(%kids: !cfb.array<tensor<4xf32>>) -> tensor<4xf32> {
  %r = cfb.block "node"(%kids) : (!cfb.array<tensor<4xf32>>) -> tensor<4xf32> attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%list: !cfb.array<tensor<4xf32>>):
    %zero = arith.constant dense<0.0> : tensor<4xf32>
    %s = cfb.reduce_rows %list init(%zero) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%acc: f32, %e: f32):
      %n = arith.addf %acc, %e : f32
      cfb.yield %n : f32
    }
    cfb.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
