// A phase that instances come to after different flushes is dropped where it parts two decisions that do not need each
// other: the second loop waits beside the first. It stays where all that waits behind it needs all before it, and so
// does one that the program set, which has no attribute.
// RUN: %batch-opt %s --fork-join | %FileCheck %s

cfb.kernel @is {
^bb0(%rows: index, %x: tensor<?xi1>):
  cfb.yield %x : tensor<?xi1>
}

func.func private @settle(%x: !cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>> {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %x : !cfb.lazy<tensor<i1>>
}

// CHECK-LABEL: func.func @dropped
// CHECK-NOT: cfb.phase
// CHECK: cfb.fork -> (i1, !cfb.lazy<tensor<i1>>) ({
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.record
// CHECK-NEXT: cfb.force
// CHECK-NEXT: cfb.join
// CHECK-NEXT: }, {
// CHECK-NEXT: func.call @settle
// CHECK-NEXT: cfb.join
// CHECK-NEXT: })
// CHECK-NEXT: return
func.func @dropped(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>) -> (i1, !cfb.lazy<tensor<i1>>) {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  cfb.phase 1 {cfb.after_decision}
  %u = cfb.record @is(%a) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %p = cfb.force %u : !cfb.lazy<tensor<i1>> -> i1
  %b = func.call @settle(%y) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  return %p, %b : i1, !cfb.lazy<tensor<i1>>
}

// CHECK-LABEL: func.func @needed
// CHECK-NOT: cfb.fork
// CHECK: cfb.phase 1 {cfb.after_decision}
// CHECK-NOT: cfb.fork
// CHECK: return
func.func @needed(%x: !cfb.lazy<tensor<i1>>) -> i1 {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  cfb.phase 1 {cfb.after_decision}
  %u = cfb.record @is(%a) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %p = cfb.force %u : !cfb.lazy<tensor<i1>> -> i1
  return %p : i1
}

// CHECK-LABEL: func.func @set
// CHECK-NOT: cfb.fork
// CHECK: cfb.phase 1
// CHECK-NOT: cfb.fork
// CHECK: return
func.func @set(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>) -> (!cfb.lazy<tensor<i1>>, !cfb.lazy<tensor<i1>>) {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  cfb.phase 1
  %b = func.call @settle(%y) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  return %a, %b : !cfb.lazy<tensor<i1>>, !cfb.lazy<tensor<i1>>
}
