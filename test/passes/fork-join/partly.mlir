// What needs some of the strands waits for these and not for the others: each of the two chains goes on by itself,
// though the program turns from one to the other.
// RUN: %batch-opt %s --fork-join | %FileCheck %s

cfb.kernel @is {
^bb0(%rows: index, %x: tensor<?xi1>):
  cfb.yield %x : tensor<?xi1>
}

func.func private @settle(%x: !cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>> {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %x : !cfb.lazy<tensor<i1>>
}

// CHECK-LABEL: func.func @chains
// CHECK: %[[F:.*]]:4 = cfb.fork {needs = array<i64: 0, 1>}
// CHECK-NEXT: %[[A:.*]] = func.call @settle(
// CHECK-NEXT: %[[U:.*]] = cfb.record @is(%[[A]])
// CHECK-NEXT: cfb.join %[[U]]
// CHECK-NEXT: }, {
// CHECK-NEXT: %[[C:.*]] = func.call @settle(
// CHECK-NEXT: cfb.join %[[C]]
// CHECK-NEXT: }, {
// CHECK-NEXT: ^bb0(%[[U1:.*]]: !cfb.lazy<tensor<i1>>):
// CHECK-NEXT: %[[B:.*]] = func.call @settle(%[[U1]])
// CHECK-NEXT: cfb.join %[[B]]
// CHECK-NEXT: }, {
// CHECK-NEXT: ^bb0(%[[C1:.*]]: !cfb.lazy<tensor<i1>>):
// CHECK-NEXT: %[[D:.*]] = func.call @settle(%[[C1]])
// CHECK-NEXT: cfb.join %[[D]]
// CHECK-NEXT: })
// CHECK-NEXT: return %[[F]]#2, %[[F]]#3
func.func @chains(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>) -> (!cfb.lazy<tensor<i1>>, !cfb.lazy<tensor<i1>>) {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %c = func.call @settle(%y) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %u = cfb.record @is(%a) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %b = func.call @settle(%u) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %d = func.call @settle(%c) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  return %b, %d : !cfb.lazy<tensor<i1>>, !cfb.lazy<tensor<i1>>
}

// What needs both, and nothing else waits behind it, comes after the fork; where something does, it is a strand that
// waits for both, and what it needs of both is made there.
// CHECK-LABEL: func.func @both_and_another
// CHECK: cfb.fork {needs = array<i64: 0, 1>}
// CHECK: }, {
// CHECK: }, {
// CHECK-NEXT: ^bb0(%[[P:.*]]: i1, %[[Q:.*]]: i1):
// CHECK-NEXT: arith.andi %[[P]], %[[Q]]
// CHECK-NEXT: arith.select
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: }, {
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: })
func.func private @vote(%x: !cfb.lazy<tensor<i1>>) -> i1 {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %p : i1
}

func.func @both_and_another(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>) -> (!cfb.lazy<tensor<i1>>, !cfb.lazy<tensor<i1>>) {
  %a = func.call @vote(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %b = func.call @vote(%y) : (!cfb.lazy<tensor<i1>>) -> i1
  %c = arith.andi %a, %b : i1
  %z = arith.select %c, %x, %y : !cfb.lazy<tensor<i1>>
  %d = func.call @settle(%z) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %e = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  return %d, %e : !cfb.lazy<tensor<i1>>, !cfb.lazy<tensor<i1>>
}

// An array that may grow in place is nobody's argument.
// CHECK-LABEL: func.func @arrays
// CHECK: cfb.fork -> (
// CHECK: })
// CHECK: return
func.func @arrays(%xs: !cfb.array<i32>, %x: !cfb.lazy<tensor<i1>>, %n: i32) -> (i1, !cfb.array<i32>) {
  %a = func.call @vote(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %b = func.call @vote(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %ys = scf.if %a -> (!cfb.array<i32>) {
    %zs = cfb.array_push %xs, (%n) : !cfb.array<i32>, (i32)
    scf.yield %zs : !cfb.array<i32>
  } else {
    scf.yield %xs : !cfb.array<i32>
  }
  %m = cfb.array_get %ys[%n] : !cfb.array<i32> -> (i32)
  %c = func.call @vote(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %d = arith.xori %b, %c : i1
  return %d, %ys : i1, !cfb.array<i32>
}
