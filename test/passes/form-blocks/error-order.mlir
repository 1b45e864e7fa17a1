// What may end an instance with an error stays behind what may end it before, also where it needs no
// call: of two errors the first is told. What cannot fail goes before the call that it does not need.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: call @rec
// CHECK: arith.addi
// CHECK: call @rec
// CHECK: cfb.within
// CHECK: arith.divsi
func.func @main(%k: i32, %x: tensor<3xf32>, %n: index) -> (tensor<3xf32>, i32, i32, i32) {
  %a = call @rec(%k, %x, %n) : (i32, tensor<3xf32>, index) -> tensor<3xf32>
  %b = call @rec(%k, %a, %n) : (i32, tensor<3xf32>, index) -> tensor<3xf32>
  %i = cfb.within %k of %n
  %q = arith.divsi %k, %k {cfb.checked} : i32
  %s = arith.addi %k, %k : i32
  return %b, %i, %q, %s : tensor<3xf32>, i32, i32, i32
}

func.func private @rec(%k: i32, %x: tensor<3xf32>, %n: index) -> tensor<3xf32> {
  %i = cfb.within %k of %n
  %y = func.call @rec(%i, %x, %n) : (i32, tensor<3xf32>, index) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
