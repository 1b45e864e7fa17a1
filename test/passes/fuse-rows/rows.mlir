// A kernel over rows is launched over the rows of all calls at once, and its description says so; without
// the pass each call's rows are a range of their own.
// RUN: %batch-opt %s --plan-kernels --fuse-rows | %FileCheck %s
// RUN: %batch-opt %s --plan-kernels --fuse-rows --lower-kernels | %FileCheck --check-prefix=FUSED %s
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck --check-prefix=APART %s

// CHECK: ragged.kernel @twice attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>], unit = #cfb<unit rows>}
// CHECK: ragged.blocks fused of 96 tile 1 {
// FUSED: \22unit\22:\22rows\22
// FUSED-SAME: \22fused\22:true
// APART: \22unit\22:\22rows\22
// APART-NOT: fused
cfb.kernel @twice attributes {unit = #cfb<unit rows>, lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>]} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>):
  %y = arith.addf %x, %x : tensor<?x8xf32>
  cfb.yield %y : tensor<?x8xf32>
}
