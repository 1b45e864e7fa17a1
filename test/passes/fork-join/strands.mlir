// What may wait and does not need each other becomes strands, in the order of the block: two calls, a decision
// with the branch that it chooses, the elements of a map. What only records goes before them.
// RUN: %batch-opt %s --fork-join | %FileCheck %s

cfb.kernel @is {
^bb0(%rows: index, %x: tensor<?xi1>):
  cfb.yield %x : tensor<?xi1>
}

// CHECK-LABEL: func.func private @settle
// CHECK-NOT: cfb.fork
func.func private @settle(%x: !cfb.lazy<tensor<i1>>) -> i1 {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %p : i1
}

// CHECK-LABEL: func.func @calls
// CHECK: %[[Y:.*]] = cfb.record @is
// CHECK-NEXT: %[[F:.*]]:2 = cfb.fork -> (i1, i1) ({
// CHECK-NEXT: %[[A:.*]] = func.call @settle
// CHECK-NEXT: cfb.join %[[A]] : i1
// CHECK-NEXT: }, {
// CHECK-NEXT: %[[B:.*]] = func.call @settle(%[[Y]])
// CHECK-NEXT: cfb.join %[[B]] : i1
// CHECK-NEXT: })
// CHECK-NEXT: arith.andi %[[F]]#0, %[[F]]#1
func.func @calls(%x: !cfb.lazy<tensor<i1>>) -> i1 {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %y = cfb.record @is(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %b = func.call @settle(%y) : (!cfb.lazy<tensor<i1>>) -> i1
  %c = arith.andi %a, %b : i1
  return %c : i1
}

// A strand goes on with what needs it, and with what it needs for that alone.
// CHECK-LABEL: func.func @branches
// CHECK: %[[F:.*]]:2 = cfb.fork -> (i1, i1) ({
// CHECK-NEXT: %[[P:.*]] = cfb.force
// CHECK-NEXT: %[[N:.*]] = arith.xori %[[P]]
// CHECK-NEXT: %[[R:.*]] = scf.if %[[N]]
// CHECK: cfb.join %[[R]] : i1
// CHECK-NEXT: }, {
// CHECK-NEXT: func.call @settle
// CHECK: })
// CHECK-NEXT: arith.ori %[[F]]#0, %[[F]]#1
func.func @branches(%x: !cfb.lazy<tensor<i1>>, %true: i1) -> i1 {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  %n = arith.xori %p, %true : i1
  %r = scf.if %n -> (i1) {
    %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
    scf.yield %a : i1
  } else {
    scf.yield %true : i1
  }
  %b = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %c = arith.ori %r, %b : i1
  return %c : i1
}

// What needs both comes after, and may begin a fork of its own.
// CHECK-LABEL: func.func @both
// CHECK: cfb.fork -> (i1, i1)
// CHECK: arith.andi
// CHECK: cfb.fork -> (i1, i1)
// CHECK: return
func.func @both(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>) -> (i1, i1) {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %b = func.call @settle(%y) : (!cfb.lazy<tensor<i1>>) -> i1
  %c = arith.andi %a, %b : i1
  %z = arith.select %c, %x, %y : !cfb.lazy<tensor<i1>>
  %d = func.call @settle(%z) : (!cfb.lazy<tensor<i1>>) -> i1
  %e = func.call @settle(%z) : (!cfb.lazy<tensor<i1>>) -> i1
  return %d, %e : i1, i1
}

// CHECK-LABEL: func.func @elements
// CHECK: cfb.map {{.*}} attributes {cfb.fork}
// CHECK: cfb.map {{.*}} -> !cfb.array<i32> {
func.func @elements(%xs: !cfb.array<!cfb.lazy<tensor<i1>>>, %is: !cfb.array<i32>) -> (!cfb.array<i1>, !cfb.array<i32>) {
  %ps = cfb.map %xs : (!cfb.array<!cfb.lazy<tensor<i1>>>) -> !cfb.array<i1> {
  ^bb0(%x: !cfb.lazy<tensor<i1>>):
    %p = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
    cfb.yield %p : i1
  }
  %js = cfb.map %is : (!cfb.array<i32>) -> !cfb.array<i32> {
  ^bb0(%i: i32):
    cfb.yield %i : i32
  }
  return %ps, %js : !cfb.array<i1>, !cfb.array<i32>
}
