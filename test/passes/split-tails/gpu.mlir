// A GPU cuts calls into tiles: of a kernel that is planned for both, the loops of the CPU are split, those in the
// `gpu.module` are not.
// RUN: %batch-opt %s --plan-kernels-for-gpu --plan-kernels --split-tails --hoist-lengths | %FileCheck %s

!x = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// CHECK: gpu.module
// CHECK: ragged.kernel @twice
// CHECK: ragged.calls {
// CHECK: ragged.kernel @twice
// CHECK: ragged.calls split 16 hoisted {
cfb.kernel @twice attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  %y = arith.addf %x, %x : !x
  cfb.yield %y : !x
}
