// A decision may stand wherever the control program is: in loops, matches, maps and folds, in a
// function that recurses and returns several values. The instance waits on its own stack.
// RUN: %batch-opt %s --lower-control | %FileCheck %s
// RUN: %batch-opt %s --lower-control | %batch-opt | %FileCheck %s

cfb.adt @L ["End", "More"] [[], [!cfb.lazy<tensor<i1>>, !cfb.adt<@L>]]

// CHECK-LABEL: func.func private @coh.walk
// CHECK: func.call @cohort_fail
// CHECK: scf.if
// CHECK: func.call @cohort_force
// CHECK: scf.if
// CHECK: func.call @coh.walk
func.func private @walk(%l: !cfb.adt<@L>, %n: i32) -> (i32, i1) {
  %r:2 = cfb.match %l : !cfb.adt<@L> -> (i32, i1) ({
    %f = arith.constant false
    cfb.yield %n, %f : i32, i1
  }, {
  ^bb0(%p: !cfb.lazy<tensor<i1>>, %rest: !cfb.adt<@L>):
    %b = cfb.force %p : !cfb.lazy<tensor<i1>> -> i1
    %s:2 = scf.if %b -> (i32, i1) {
      %a:2 = func.call @walk(%rest, %n) : (!cfb.adt<@L>, i32) -> (i32, i1)
      scf.yield %a#0, %a#1 : i32, i1
    } else {
      scf.yield %n, %b : i32, i1
    }
    cfb.yield %s#0, %s#1 : i32, i1
  })
  return %r#0, %r#1 : i32, i1
}

// CHECK-LABEL: func.func private @coh.main
// CHECK: scf.for
// CHECK: func.call @cohort_force
// CHECK: scf.for
// CHECK: func.call @cohort_force
// CHECK: scf.while
// CHECK: func.call @cohort_force
// CHECK: scf.condition
func.func @main(%l: !cfb.adt<@L>, %a: !cfb.array<!cfb.lazy<tensor<i32>>>, %p: !cfb.lazy<tensor<i1>>) -> i32
    attributes {cfb.entry, cfb.arguments = ["l", "a", "p"],
                cfb.argument_types = [!cfb.adt<@L>, !cfb.array<tensor<i32>>, tensor<i1>], cfb.result_type = i32} {
  %zero = arith.constant 0 : i32
  %m = cfb.map %a : (!cfb.array<!cfb.lazy<tensor<i32>>>) -> !cfb.array<i32> {
  ^bb0(%x: !cfb.lazy<tensor<i32>>):
    %i = cfb.force %x : !cfb.lazy<tensor<i32>> -> i32
    cfb.yield %i : i32
  }
  %s = cfb.fold %a init(%zero) : (!cfb.array<!cfb.lazy<tensor<i32>>>, i32) -> i32 {
  ^bb0(%acc: i32, %x: !cfb.lazy<tensor<i32>>):
    %i = cfb.force %x : !cfb.lazy<tensor<i32>> -> i32
    %n = arith.addi %acc, %i : i32
    cfb.yield %n : i32
  }
  %w = scf.while (%i = %s) : (i32) -> i32 {
    %go = cfb.force %p : !cfb.lazy<tensor<i1>> -> i1
    scf.condition(%go) %i : i32
  } do {
  ^bb0(%i: i32):
    cfb.turn
    scf.yield %i : i32
  }
  %len = cfb.array_len %m : !cfb.array<i32>
  %r:2 = func.call @walk(%l, %w) : (!cfb.adt<@L>, i32) -> (i32, i1)
  %sum = arith.addi %r#0, %len : i32
  return %sum : i32
}
