// A division by zero is the instance's error, and the one quotient that does not fit wraps around:
// neither may trap and end the process. A float is in range by then: level 0 clamps it.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[A:.*]]: i32, %[[B:.*]]: i32, %[[X:.*]]: f32)
// CHECK: %[[BY_ZERO:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : i32
// CHECK: scf.if %[[BY_ZERO]] {
// CHECK: %[[CODE:.*]] = arith.constant 7 : i32
// CHECK: call @cohort_fail(%[[CONTEXT]], %[[CODE]]
// CHECK: %[[BY_MINUS_ONE:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : i32
// CHECK: %[[SAFE:.*]] = arith.select %[[BY_MINUS_ONE]], %{{.*}}, %[[B]] : i32
// CHECK: %[[QUOTIENT:.*]] = arith.divsi %[[A]], %[[SAFE]] : i32
// CHECK: %[[NEGATED:.*]] = arith.subi %{{.*}}, %[[A]] : i32
// CHECK: %[[Q:.*]] = arith.select %[[BY_MINUS_ONE]], %[[NEGATED]], %[[QUOTIENT]] : i32
// CHECK: %[[REMAINDER:.*]] = arith.remsi %[[A]], %{{.*}} : i32
// CHECK: %[[R:.*]] = arith.select %{{[^,]*}}, %{{[^,]*}}, %[[REMAINDER]] : i32
// CHECK: %[[I:.*]] = arith.fptosi %[[X]] : f32 to i32
// CHECK: return %[[Q]], %[[R]], %[[I]]
func.func @main(%a: i32, %b: i32, %x: f32) -> (i32, i32, i32)
    attributes {cfb.entry, cfb.arguments = ["a", "b", "x"], cfb.argument_types = [i32, i32, f32],
                cfb.result_type = tuple<i32, i32, i32>} {
  %q = arith.divsi %a, %b : i32
  %r = arith.remsi %a, %b : i32
  %i = arith.fptosi %x : f32 to i32
  return %q, %r, %i : i32, i32, i32
}
