// The first error of an instance counts, so what may fail stays in the order of the program: it goes with the
// strand that follows it, or with the one before it where that must be.
// RUN: %batch-opt %s --fork-join | %FileCheck %s

func.func private @settle(%i: i32, %x: !cfb.lazy<tensor<i1>>) -> i1 {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %p : i1
}

// CHECK-LABEL: func.func @with_the_next
// CHECK: cfb.array_get
// CHECK-NEXT: cfb.fork -> (i1, i1) ({
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: }, {
// CHECK-NEXT: cfb.array_get
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: })
func.func @with_the_next(%is: !cfb.array<i32>, %k: i32, %x: !cfb.lazy<tensor<i1>>) -> (i1, i1) {
  %i = cfb.array_get %is[%k] : !cfb.array<i32> -> (i32)
  %a = func.call @settle(%i, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  %j = cfb.array_get %is[%i] : !cfb.array<i32> -> (i32)
  %b = func.call @settle(%j, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  return %a, %b : i1, i1
}

// The index needs the first call, the second call does not: it begins a strand, and the index stays before it.
// CHECK-LABEL: func.func @with_the_last
// CHECK: cfb.fork -> (i1, i32, i1) ({
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: arith.extui
// CHECK-NEXT: cfb.array_get
// CHECK-NEXT: cfb.join
// CHECK-NEXT: }, {
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: })
func.func @with_the_last(%is: !cfb.array<i32>, %k: i32, %x: !cfb.lazy<tensor<i1>>) -> (i1, i32, i1) {
  %a = func.call @settle(%k, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  %n = arith.extui %a : i1 to i32
  %i = cfb.array_get %is[%n] : !cfb.array<i32> -> (i32)
  %b = func.call @settle(%k, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  return %a, %i, %b : i1, i32, i1
}

// The third needs the first, and the second stands between them: nothing else waits, and it need not wait for the
// second.
// CHECK-LABEL: func.func @between
// CHECK: %[[F:.*]]:3 = cfb.fork {needs = array<i64: 0>} -> (i32, i1, i1) ({
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: arith.extui
// CHECK-NEXT: cfb.join
// CHECK-NEXT: }, {
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: }, {
// CHECK-NEXT: ^bb0(%[[N:.*]]: i32):
// CHECK-NEXT: func.call @settle(%[[N]],
// CHECK-NEXT: cfb.join
// CHECK-NEXT: })
// CHECK-NEXT: return %[[F]]#1, %[[F]]#2
func.func @between(%k: i32, %x: !cfb.lazy<tensor<i1>>) -> (i1, i1) {
  %a = func.call @settle(%k, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  %b = func.call @settle(%k, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  %n = arith.extui %a : i1 to i32
  %c = func.call @settle(%n, %x) : (i32, !cfb.lazy<tensor<i1>>) -> i1
  return %b, %c : i1, i1
}
