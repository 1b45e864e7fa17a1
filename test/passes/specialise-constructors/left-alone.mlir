// Left as they are: a function that does not take the argument apart, one that may be called from outside, an arm
// that multiplies, where all calls should share the product, and the eighth combination of constructors.
// RUN: %batch-opt %s --specialise-constructors --verify-diagnostics -o %t
// RUN: %FileCheck %s < %t

cfb.adt @Option ["None", "Some"] [[], [tensor<64xf32>]]
cfb.adt @Three ["A", "B", "C"] [[], [], []]
ml_program.global private @w(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>

// CHECK-NOT: @hands_on_
func.func private @hands_on(%o: !cfb.adt<@Option>) -> !cfb.adt<@Option> attributes {no_inline} {
  return %o : !cfb.adt<@Option>
}

// CHECK-NOT: @outside_
func.func @outside(%o: !cfb.adt<@Option>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %r = cfb.match %o : !cfb.adt<@Option> -> (tensor<64xf32>) ({
    cfb.yield %y : tensor<64xf32>
  }, {
  ^bb0(%x: tensor<64xf32>):
    cfb.yield %x : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK: func.func private @multiplies_None(
// CHECK-NOT: @multiplies_Some
// expected-remark @+1 {{`multiplies` is not copied for calls with `Some`, where it multiplies 4096 times: all calls share that}}
func.func private @multiplies(%o: !cfb.adt<@Option>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {no_inline} {
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %r = cfb.match %o : !cfb.adt<@Option> -> (tensor<64xf32>) ({
    cfb.yield %y : tensor<64xf32>
  }, {
  ^bb0(%x: tensor<64xf32>):
    %p = linalg.vecmat ins(%x, %w : tensor<64xf32>, tensor<64x64xf32>) outs(%y : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %p : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-COUNT-7: func.func private @many_
// CHECK-NOT: func.func private @many_
// expected-remark @+1 {{`many` is called with more than 7 combinations of constructors}}
func.func private @many(%a: !cfb.adt<@Three>, %b: !cfb.adt<@Three>) -> i32 attributes {no_inline} {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32
  %r = cfb.match %a : !cfb.adt<@Three> -> (i32) ({
    cfb.yield %0 : i32
  }, {
    cfb.yield %1 : i32
  }, {
    cfb.yield %1 : i32
  })
  %s = cfb.match %b : !cfb.adt<@Three> -> (i32) ({
    cfb.yield %0 : i32
  }, {
    cfb.yield %r : i32
  }, {
    cfb.yield %r : i32
  })
  return %s : i32
}

// CHECK-LABEL: func.func @main(
// CHECK: call @hands_on(
// CHECK: call @outside(
// CHECK: call @multiplies_None(
// CHECK: call @multiplies(
// CHECK: call @many_C_A()
// CHECK: call @many(
// CHECK: call @many(
func.func @main(%x: tensor<64xf32>, %o: !cfb.adt<@Option>) {
  %none = cfb.construct "None"() : () -> !cfb.adt<@Option>
  %some = cfb.construct "Some"(%x) : (tensor<64xf32>) -> !cfb.adt<@Option>
  %0 = func.call @hands_on(%some) : (!cfb.adt<@Option>) -> !cfb.adt<@Option>
  %1 = func.call @outside(%some, %x) : (!cfb.adt<@Option>, tensor<64xf32>) -> tensor<64xf32>
  %2 = func.call @multiplies(%none, %x) : (!cfb.adt<@Option>, tensor<64xf32>) -> tensor<64xf32>
  %3 = func.call @multiplies(%some, %x) : (!cfb.adt<@Option>, tensor<64xf32>) -> tensor<64xf32>
  %4 = func.call @multiplies(%o, %x) : (!cfb.adt<@Option>, tensor<64xf32>) -> tensor<64xf32>
  %a = cfb.construct "A"() : () -> !cfb.adt<@Three>
  %b = cfb.construct "B"() : () -> !cfb.adt<@Three>
  %c = cfb.construct "C"() : () -> !cfb.adt<@Three>
  %aa = func.call @many(%a, %a) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %ab = func.call @many(%a, %b) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %ac = func.call @many(%a, %c) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %ba = func.call @many(%b, %a) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %bb = func.call @many(%b, %b) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %bc = func.call @many(%b, %c) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %ca = func.call @many(%c, %a) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %cb = func.call @many(%c, %b) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  %cc = func.call @many(%c, %c) : (!cfb.adt<@Three>, !cfb.adt<@Three>) -> i32
  return
}
