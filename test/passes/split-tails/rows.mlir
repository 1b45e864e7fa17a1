// A kernel over rows has no loop over a length, as its rows are those of all calls: its loops stay as they are.
// RUN: %batch-opt %s --plan-kernels --split-tails --hoist-lengths | %FileCheck %s

// CHECK: ragged.kernel @twice attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>], unit = #cfb<unit rows>}
// CHECK-NOT: split
// CHECK-NOT: hoisted
// CHECK: ragged.blocks
// CHECK-NEXT: ragged.nest over [8] lanes 0 {
cfb.kernel @twice attributes {unit = #cfb<unit rows>, lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>]} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>):
  %y = arith.addf %x, %x : tensor<?x8xf32>
  cfb.yield %y : tensor<?x8xf32>
}
