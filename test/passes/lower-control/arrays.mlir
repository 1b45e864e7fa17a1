// An array is its length and its elements' slots; an element of several values takes as many slots.
// An index is checked against the length, whatever its sign.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.create
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[X:.*]]: i32, %[[F:.*]]: f32)
// CHECK: %[[SLOTS:.*]] = arith.constant 5 : i64
// CHECK: %[[ARRAY:.*]] = call @cohort_alloc(%[[CONTEXT]], %[[SLOTS]])
// CHECK: %[[LENGTH:.*]] = arith.constant 2 : i64
// CHECK: llvm.store %[[LENGTH]], %[[ARRAY]]
// CHECK: llvm.getelementptr %[[ARRAY]][1]
// CHECK: llvm.getelementptr %[[ARRAY]][2]
// CHECK: llvm.getelementptr %[[ARRAY]][3]
// CHECK: llvm.getelementptr %[[ARRAY]][4]
func.func private @create(%x: i32, %f: f32) -> !cfb.array<tuple<i32, f32>> {
  %a = cfb.array_create %x, %f, %x, %f : (i32, f32, i32, f32) -> !cfb.array<tuple<i32, f32>>
  return %a : !cfb.array<tuple<i32, f32>>
}

// CHECK-LABEL: func.func private @coh.get
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[A:.*]]: !llvm.ptr, %[[I:.*]]: i32)
// CHECK: %[[INDEX:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK: %[[LENGTH:.*]] = llvm.load %[[A]] : !llvm.ptr -> i64
// CHECK: %[[OUTSIDE:.*]] = arith.cmpi uge, %[[INDEX]], %[[LENGTH]] : i64
// CHECK: scf.if %[[OUTSIDE]] {
// CHECK: call @cohort_fail(%[[CONTEXT]], %{{[^,]*}}, %[[INDEX]], %[[LENGTH]], %{{.*}})
// CHECK: %[[WIDTH:.*]] = arith.constant 2 : i64
// CHECK: %[[OFFSET:.*]] = arith.muli %[[INDEX]], %[[WIDTH]] : i64
// CHECK: %[[BASE:.*]] = llvm.getelementptr %[[A]][%[[OFFSET]]]
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[BASE]][1]
// CHECK: llvm.load %[[FIRST]] : !llvm.ptr -> i32
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[BASE]][2]
// CHECK: llvm.load %[[SECOND]] : !llvm.ptr -> f32
func.func private @get(%a: !cfb.array<tuple<i32, f32>>, %i: i32) -> (i32, f32) {
  %r:2 = cfb.array_get %a[%i] : !cfb.array<tuple<i32, f32>> -> (i32, f32)
  return %r#0, %r#1 : i32, f32
}

// CHECK-LABEL: func.func private @coh.push
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %[[A:.*]]: !llvm.ptr, %[[X:.*]]: i32)
// CHECK: %[[LENGTH:.*]] = llvm.load %[[A]]
// CHECK: %[[LONGER:.*]] = arith.addi %[[LENGTH]], %{{.*}} : i64
// CHECK: %[[NEW:.*]] = call @cohort_alloc
// CHECK: "llvm.intr.memcpy"
// CHECK: llvm.store %[[LONGER]], %[[NEW]]
// CHECK: %[[BASE:.*]] = llvm.getelementptr %[[NEW]][%[[LENGTH]]]
// CHECK: %[[LAST:.*]] = llvm.getelementptr %[[BASE]][1]
// CHECK: llvm.store %{{.*}}, %[[LAST]]
func.func private @push(%a: !cfb.array<i32>, %x: i32) -> !cfb.array<i32> {
  %b = cfb.array_push %a, (%x) : !cfb.array<i32>, (i32)
  return %b : !cfb.array<i32>
}

// CHECK-LABEL: func.func private @coh.reverse
// CHECK: llvm.store
// CHECK: %[[LAST:.*]] = arith.subi %[[LENGTH:[a-z0-9]+]], %{{.*}} : i64
// CHECK: scf.for %[[I:[a-z0-9]+]] = %{{[^ ]*}} to %[[LENGTH]]
// CHECK: arith.subi %[[LAST]], %[[I]]
func.func private @reverse(%a: !cfb.array<i32>) -> !cfb.array<i32> {
  %b = cfb.array_reverse %a : !cfb.array<i32>
  return %b : !cfb.array<i32>
}

// CHECK-LABEL: func.func private @coh.range
// CHECK: %[[COUNT:.*]] = arith.extsi
// CHECK: %[[LENGTH:.*]] = arith.maxsi %[[COUNT]], %{{.*}} : i64
// CHECK: scf.for %{{[^ ]*}} = %{{[^ ]*}} to %[[LENGTH]]
func.func private @range(%n: i32) -> !cfb.array<i32> {
  %a = cfb.array_range %n : !cfb.array<i32>
  return %a : !cfb.array<i32>
}

// CHECK-LABEL: func.func private @coh.main
// CHECK: %[[LENGTH:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: arith.trunci %[[LENGTH]] : i64 to i32
func.func @main(%i: i32, %x: f32) -> (i32, f32, i32)
    attributes {cfb.entry, cfb.arguments = ["i", "x"], cfb.argument_types = [i32, f32],
                cfb.result_type = tuple<i32, f32, i32>} {
  %a = func.call @create(%i, %x) : (i32, f32) -> !cfb.array<tuple<i32, f32>>
  %r:2 = func.call @get(%a, %i) : (!cfb.array<tuple<i32, f32>>, i32) -> (i32, f32)
  %b = func.call @range(%i) : (i32) -> !cfb.array<i32>
  %c = func.call @push(%b, %i) : (!cfb.array<i32>, i32) -> !cfb.array<i32>
  %d = func.call @reverse(%c) : (!cfb.array<i32>) -> !cfb.array<i32>
  %n = cfb.array_len %d : !cfb.array<i32>
  return %r#0, %r#1, %n : i32, f32, i32
}
