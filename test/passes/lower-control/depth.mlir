// Each call is a step, so that what recurses without recording anything ends, too: steps are counted down
// in the runtime's context, which gives more of them where none is left. A function that can reach itself
// counts how many calls of it are active, checks them and the stack against their limits, and counts back
// when it returns. A function that cannot recurse does not.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.even
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %{{.*}}: i1, %{{.*}}: i32) -> i1
// CHECK: %[[AT_STEPS:.*]] = llvm.getelementptr %[[CONTEXT]][5]
// CHECK: %[[LEFT:.*]] = llvm.load %[[AT_STEPS]]
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[LEFT]], %{{.*}} : i64
// CHECK: scf.if %[[NONE]] {
// CHECK: call @cohort_step(%[[CONTEXT]], %{{.*}})
// CHECK: %[[NOW:.*]] = llvm.load %[[AT_STEPS]]
// CHECK: %[[FEWER:.*]] = arith.subi %[[NOW]], %{{.*}} : i64
// CHECK: llvm.store %[[FEWER]], %[[AT_STEPS]]
// CHECK: %[[DEPTH:.*]] = llvm.load %[[CONTEXT]] : !llvm.ptr -> i64
// CHECK: %[[AT_MAX:.*]] = llvm.getelementptr %[[CONTEXT]][1]
// CHECK: %[[MAX:.*]] = llvm.load %[[AT_MAX]]
// CHECK: %[[AT_LIMIT:.*]] = llvm.getelementptr %[[CONTEXT]][2]
// CHECK: %[[LIMIT:.*]] = llvm.load %[[AT_LIMIT]]
// CHECK: %[[STACK:.*]] = llvm.intr.stacksave
// CHECK: %[[POINTER:.*]] = llvm.ptrtoint %[[STACK]]
// CHECK: %[[DEEP:.*]] = arith.cmpi uge, %[[DEPTH]], %[[MAX]]
// CHECK: %[[LOW:.*]] = arith.cmpi ult, %[[POINTER]], %[[LIMIT]]
// CHECK: %[[STOP:.*]] = arith.ori %[[DEEP]], %[[LOW]]
// CHECK: scf.if %[[STOP]] {
// CHECK: %[[CODE:.*]] = arith.constant 1 : i32
// CHECK: call @cohort_fail(%[[CONTEXT]], %[[CODE]], %[[DEPTH]], %[[MAX]], %{{.*}})
// CHECK: %[[DEEPER:.*]] = arith.addi %[[DEPTH]], %{{.*}} : i64
// CHECK: llvm.store %[[DEEPER]], %[[CONTEXT]]
// CHECK: call @coh.odd
// CHECK: llvm.store %[[DEPTH]], %[[CONTEXT]]
// CHECK-NEXT: return
func.func private @even(%stop: i1, %n: i32) -> i1 {
  %r = scf.if %stop -> i1 {
    scf.yield %stop : i1
  } else {
    %x = func.call @odd(%stop, %n) : (i1, i32) -> i1
    scf.yield %x : i1
  }
  return %r : i1
}

// CHECK-LABEL: func.func private @coh.odd
// CHECK: llvm.intr.stacksave
func.func private @odd(%stop: i1, %n: i32) -> i1 {
  %x = func.call @even(%stop, %n) : (i1, i32) -> i1
  return %x : i1
}

// CHECK-LABEL: func.func private @coh.main
// CHECK-NOT: llvm.intr.stacksave
// CHECK: call @coh.even
func.func @main(%stop: i1, %n: i32) -> i1
    attributes {cfb.entry, cfb.arguments = ["stop", "n"], cfb.argument_types = [i1, i32], cfb.result_type = i1} {
  %x = func.call @even(%stop, %n) : (i1, i32) -> i1
  return %x : i1
}
