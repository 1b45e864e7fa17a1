// A kernel over rows has no loop over a length: its rows are those of all calls, and it is not marked.
// RUN: %batch-opt %s --split-tails --hoist-lengths | %FileCheck %s

ragged.dim @batch
ragged.dim @n(@batch)

// CHECK: cfb.kernel @twice attributes {lengths = [@n], operands = ["ragged"], rows = [@n], unit = "rows"}
cfb.kernel @twice attributes {unit = "rows", lengths = [@n], rows = [@n], operands = ["ragged"]} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>):
  %y = arith.addf %x, %x : tensor<?x8xf32>
  cfb.yield %y : tensor<?x8xf32>
}
