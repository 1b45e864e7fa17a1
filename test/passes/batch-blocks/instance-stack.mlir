// A stack that something computes with is a call of a kernel that copies rows to where they lie one
// behind another; one that is only a result of the entry stays, for its rows can be written out from
// where they are. A stack of tensors that differ in length has no rows of one space and is refused.
// RUN: %batch-opt %s --batch-blocks --split-input-file --verify-diagnostics | %FileCheck %s

// CHECK: cfb.kernel @stack_0 attributes {lengths = [@dim.0], rows = [@dim.0], sym_visibility = "private", takes = [#cfb<takes stacked>], unit = #cfb<unit rows>}
// CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: tensor<?xindex>, %[[ROW:.*]]: tensor<?x4xf32>):
// CHECK-NEXT: cfb.yield %[[ROW]]
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[ROWS:.*]]: !cfb.array<!cfb.lazy<tensor<4xf32>>>
// CHECK: %[[LEN:.*]] = cfb.array_len %[[ROWS]]
// CHECK: %[[N:.*]] = arith.index_cast %[[LEN]]
// CHECK: %[[X:.*]] = cfb.record @stack_0(%[[N]], %[[ROWS]])
// CHECK: cfb.row %[[X]]
// CHECK: %[[RESULT:.*]] = cfb.stack %[[ROWS]]
// CHECK: return %{{.*}}, %[[RESULT]]
func.func @main(%rows: !cfb.array<tensor<4xf32>>, %i: i32) -> (tensor<4xf32>, tensor<?x4xf32>) attributes {cfb.entry} {
  %x = cfb.stack %rows : !cfb.array<tensor<4xf32>> -> tensor<?x4xf32>
  %r = cfb.lookup %x[%i] : tensor<?x4xf32> -> tensor<4xf32>
  %y = cfb.stack %rows : !cfb.array<tensor<4xf32>> -> tensor<?x4xf32>
  return %r, %y : tensor<4xf32>, tensor<?x4xf32>
}

// -----

func.func @main(%rows: !cfb.array<tensor<?xf32>>, %i: i32) -> tensor<?xf32> {
  // expected-error @+1 {{not supported yet: stacking tensors whose lengths differ by instance}}
  %x = cfb.stack %rows : !cfb.array<tensor<?xf32>> -> tensor<?x?xf32>
  %r = cfb.lookup %x[%i] : tensor<?x?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
