// No strands where there is nothing to gain or the order can be seen: one needs the other, nothing waits, there
// are forces only, a value is shown.
// RUN: %batch-opt %s --fork-join | %FileCheck %s
// CHECK-NOT: cfb.fork

cfb.kernel @is {
^bb0(%rows: index, %x: tensor<?xi1>):
  cfb.yield %x : tensor<?xi1>
}

func.func private @settle(%x: !cfb.lazy<tensor<i1>>) -> i1 {
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %p : i1
}

func.func private @show(%x: !cfb.lazy<tensor<i1>>) -> i1 {
  cfb.debug "x"(%x) {type = tensor<i1>} : !cfb.lazy<tensor<i1>>
  %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %p : i1
}

func.func @chain(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>) -> i1 {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %z = arith.select %a, %x, %y : !cfb.lazy<tensor<i1>>
  %b = func.call @settle(%z) : (!cfb.lazy<tensor<i1>>) -> i1
  return %b : i1
}

// Both are recorded before the first is waited for, which is as good.
// CHECK-LABEL: func.func @forces
// CHECK-NEXT: cfb.record
// CHECK-NEXT: cfb.force
// CHECK-NEXT: cfb.force
func.func @forces(%x: !cfb.lazy<tensor<i1>>) -> (i1, i1) {
  %a = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  %y = cfb.record @is(%x) : (!cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
  %b = cfb.force %y : !cfb.lazy<tensor<i1>> -> i1
  return %a, %b : i1, i1
}

func.func @shown(%x: !cfb.lazy<tensor<i1>>, %xs: !cfb.array<!cfb.lazy<tensor<i1>>>) -> (i1, i1, !cfb.array<i1>) {
  %a = func.call @show(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %b = func.call @show(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  %ps = cfb.map %xs : (!cfb.array<!cfb.lazy<tensor<i1>>>) -> !cfb.array<i1> {
  ^bb0(%y: !cfb.lazy<tensor<i1>>):
    %p = func.call @show(%y) : (!cfb.lazy<tensor<i1>>) -> i1
    cfb.yield %p : i1
  }
  return %a, %b, %ps : i1, i1, !cfb.array<i1>
}

func.func @phases(%x: !cfb.lazy<tensor<i1>>) -> (i1, i1) {
  %a = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  cfb.phase 1
  %b = func.call @settle(%x) : (!cfb.lazy<tensor<i1>>) -> i1
  return %a, %b : i1, i1
}
