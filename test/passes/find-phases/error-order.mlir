// What may end an instance with an error is in no earlier phase than what may end it before.
// RUN: %batch-opt %s --find-phases | %FileCheck %s

func.func private @cell(%x: tensor<4xf32>, %k: i32, %n: index) -> tensor<4xf32> {
  %i = cfb.within %k of %n
  %r = func.call @cell(%x, %i, %n) : (tensor<4xf32>, i32, index) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.*]] = call @cell
// CHECK-NEXT: arith.addi
// CHECK-NEXT: cfb.phase 1
// CHECK-NEXT: %[[B:.*]] = cfb.block "between"(%[[A]])
// CHECK: call @cell(%[[B]]
// CHECK: cfb.within
func.func @main(%x: tensor<4xf32>, %k: i32, %n: index) -> (tensor<4xf32>, i32, i32) attributes {cfb.entry} {
  %a = func.call @cell(%x, %k, %n) : (tensor<4xf32>, i32, index) -> tensor<4xf32>
  %b = cfb.block "between"(%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: tensor<4xf32>):
    cfb.yield %v : tensor<4xf32>
  }
  %d = func.call @cell(%b, %k, %n) : (tensor<4xf32>, i32, index) -> tensor<4xf32>
  %i = cfb.within %k of %n
  %s = arith.addi %k, %k : i32
  return %d, %i, %s : tensor<4xf32>, i32, i32
}
