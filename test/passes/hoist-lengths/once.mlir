// The rows where a call's values begin, and its length, are read before its loops. Without it they
// are read where an address or an end is needed, in the loops as well.
// RUN: %batch-opt %s --plan-kernels --hoist-lengths | %FileCheck %s
// RUN: %batch-opt %s --plan-kernels --split-tails --hoist-lengths --lower-kernels | %FileCheck --check-prefix=HOISTED %s
// RUN: %batch-opt %s --plan-kernels --split-tails --lower-kernels | %FileCheck --check-prefix=EACH %s

!x = tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>

// CHECK: ragged.calls hoisted {
// HOISTED-LABEL: func.func @twice
// HOISTED: scf.for
// HOISTED-COUNT-3: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> i32
// HOISTED: scf.for
// HOISTED-NOT: llvm.load {{.*}} -> i32
// HOISTED: return
// EACH-LABEL: func.func @twice
// EACH: scf.for
// EACH: llvm.load {{.*}} -> i32
// EACH: scf.for
// EACH: llvm.load {{.*}} -> i32
// EACH: llvm.load {{.*}} -> vector<16xf32>
// EACH: llvm.load {{.*}} -> i32
// EACH: llvm.store
cfb.kernel @twice attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  %y = arith.addf %x, %x : !x
  cfb.yield %y : !x
}
