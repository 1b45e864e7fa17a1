// A match looks at the tag only when there is a choice: one constructor needs no test, two need one
// comparison, more need a switch whose last case is the default. Fields are read from the slots after
// the tag.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-NOT: cfb.adt
cfb.adt @Pair ["Pair"] [[i32, tuple<f32, i1>]]
cfb.adt @Two ["A", "B"] [[i32], []]
cfb.adt @Three ["X", "Y", "Z"] [[], [i32], []]

// CHECK-LABEL: func.func private @coh.one
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %[[P:.*]]: !llvm.ptr) -> (f32, i1)
// CHECK-NOT: llvm.load %[[P]]
// CHECK: %[[AT_F:.*]] = llvm.getelementptr %[[P]][2]
// CHECK: %[[F:.*]] = llvm.load %[[AT_F]] : !llvm.ptr -> f32
// CHECK: %[[AT_B:.*]] = llvm.getelementptr %[[P]][3]
// CHECK: %[[SLOT:.*]] = llvm.load %[[AT_B]] : !llvm.ptr -> i32
// CHECK: %[[B:.*]] = arith.trunci %[[SLOT]] : i32 to i1
// CHECK: return %[[F]], %[[B]]
func.func private @one(%p: !cfb.adt<@Pair>) -> (f32, i1) {
  %r:2 = cfb.match %p : !cfb.adt<@Pair> -> (f32, i1) ({
  ^bb0(%i: i32, %f: f32, %b: i1):
    cfb.yield %f, %b : f32, i1
  })
  return %r#0, %r#1 : f32, i1
}

// CHECK-LABEL: func.func private @coh.two
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %[[P:.*]]: !llvm.ptr) -> i32
// CHECK: %[[TAG:.*]] = llvm.load %[[P]] : !llvm.ptr -> i64
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TAG]], %{{.*}} : i64
// CHECK: %[[R:.*]] = scf.if %[[FIRST]] -> (i32) {
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[P]][1]
// CHECK: %[[I:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i32
// CHECK: scf.yield %[[I]]
// CHECK: } else {
// CHECK-NOT: llvm.load
// CHECK: return %[[R]]
func.func private @two(%p: !cfb.adt<@Two>) -> i32 {
  %r = cfb.match %p : !cfb.adt<@Two> -> (i32) ({
  ^bb0(%i: i32):
    cfb.yield %i : i32
  }, {
    %zero = arith.constant 0 : i32
    cfb.yield %zero : i32
  })
  return %r : i32
}

// CHECK-LABEL: func.func private @coh.three
// CHECK: llvm.store
// CHECK: %[[TAG:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[TAG]] : i64 to index
// CHECK: scf.index_switch %[[INDEX]] -> i32
// CHECK: case 0 {
// CHECK: arith.constant 10 : i32
// CHECK: case 1 {
// CHECK: llvm.load
// CHECK: default {
// CHECK: arith.constant 30 : i32
func.func private @three(%p: !cfb.adt<@Three>) -> i32 {
  %r = cfb.match %p : !cfb.adt<@Three> -> (i32) ({
    %x = arith.constant 10 : i32
    cfb.yield %x : i32
  }, {
  ^bb0(%i: i32):
    cfb.yield %i : i32
  }, {
    %z = arith.constant 30 : i32
    cfb.yield %z : i32
  })
  return %r : i32
}

func.func @main(%p: !cfb.adt<@Pair>, %q: !cfb.adt<@Two>, %s: !cfb.adt<@Three>) -> (f32, i1, i32, i32)
    attributes {cfb.entry, cfb.arguments = ["p", "q", "s"],
                cfb.argument_types = [!cfb.adt<@Pair>, !cfb.adt<@Two>, !cfb.adt<@Three>],
                cfb.result_type = tuple<f32, i1, i32, i32>} {
  %a:2 = func.call @one(%p) : (!cfb.adt<@Pair>) -> (f32, i1)
  %b = func.call @two(%q) : (!cfb.adt<@Two>) -> i32
  %c = func.call @three(%s) : (!cfb.adt<@Three>) -> i32
  return %a#0, %a#1, %b, %c : f32, i1, i32, i32
}
