// Loops over a length are written twice: whole vectors without masks up to a multiple of 16, then the
// rest with masks. Without it there is one loop, and every load and store of it has a mask.
// RUN: %batch-opt %s --plan-kernels --split-tails | %FileCheck %s
// RUN: %batch-opt %s --plan-kernels --split-tails --hoist-lengths --lower-kernels | %FileCheck --check-prefix=SPLIT %s
// RUN: %batch-opt %s --plan-kernels --hoist-lengths --lower-kernels | %FileCheck --check-prefix=WHOLE %s

!x = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// CHECK: ragged.kernel @twice attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>}
// CHECK: ragged.calls split 16 {
// SPLIT-LABEL: func.func @twice
// SPLIT: %[[MAIN:.*]] = arith.andi
// SPLIT: scf.for %{{.*}} = %{{.*}} to %[[MAIN]]
// SPLIT-NOT: masked
// SPLIT: llvm.load {{.*}} -> vector<16xf32>
// SPLIT: llvm.store %{{.*}} : vector<16xf32>
// SPLIT: scf.for %{{.*}} = %[[MAIN]] to
// SPLIT: llvm.intr.masked.load
// SPLIT: llvm.intr.masked.store
// WHOLE-LABEL: func.func @twice
// WHOLE-NOT: -> vector<16xf32>
// WHOLE: llvm.intr.masked.load
// WHOLE: llvm.intr.masked.store
// WHOLE-NOT: scf.for
cfb.kernel @twice attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  %y = arith.addf %x, %x : !x
  cfb.yield %y : !x
}
