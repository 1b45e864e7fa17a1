// What an instance shows stays where it stands: behind what was before it, in a function that shows
// something too, and before what may fail behind it.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: call @rec
// CHECK: cfb.debug "first"
// CHECK: call @shows
// CHECK: cfb.debug "second"
// CHECK: cfb.within
// CHECK: cfb.debug "third"
func.func @main(%k: i32, %x: tensor<3xf32>, %n: index) -> (tensor<3xf32>, i32) {
  %a = call @rec(%k, %x) : (i32, tensor<3xf32>) -> tensor<3xf32>
  %b = math.tanh %a : tensor<3xf32>
  cfb.debug "first"(%b) {type = tensor<3xf32>} : tensor<3xf32>
  %c = call @shows(%k) : (i32) -> i32
  cfb.debug "second"(%k) {type = i32} : i32
  %i = cfb.within %k of %n
  cfb.debug "third"(%i) {type = i32} : i32
  return %b, %i : tensor<3xf32>, i32
}

func.func private @rec(%k: i32, %x: tensor<3xf32>) -> tensor<3xf32> {
  %y = func.call @rec(%k, %x) : (i32, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

func.func private @shows(%k: i32) -> i32 {
  cfb.debug "inside"(%k) {type = i32} : i32
  return %k : i32
}
