// Functions that call each other count together, a bound that is passed along is followed, and a function without
// anything to count stays as it is.
// RUN: %batch-opt %s --unroll-counters --canonicalize --cse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<4x4x4xf32>>) : tensor<4x4x4xf32>

// CHECK-NOT: func.func private @even(
// CHECK: func.func private @even_0(
// CHECK-NOT: scf.if
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0]
// CHECK: call @odd_1(
func.func private @even(%x: tensor<4xf32>, %l: i32, %n: i32) -> tensor<4xf32> attributes {no_inline} {
  %done = arith.cmpi sge, %l, %n : i32
  %r = scf.if %done -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    %w = ml_program.global_load_const @w : tensor<4x4x4xf32>
    %m = cfb.lookup %w[%l] : tensor<4x4x4xf32> -> tensor<4x4xf32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %p = linalg.vecmat ins(%x, %m : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
    %c1 = arith.constant 1 : i32
    %k = arith.addi %l, %c1 : i32
    %s = func.call @odd(%p, %k, %n) : (tensor<4xf32>, i32, i32) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK: func.func private @odd_1(
// CHECK-NOT: no_inline
// CHECK: math.tanh
// CHECK: call @even_2(
func.func private @odd(%x: tensor<4xf32>, %l: i32, %n: i32) -> tensor<4xf32> attributes {no_inline} {
  %t = math.tanh %x : tensor<4xf32>
  %c1 = arith.constant 1 : i32
  %k = arith.addi %l, %c1 : i32
  %s = func.call @even(%t, %k, %n) : (tensor<4xf32>, i32, i32) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// CHECK: func.func private @other(%{{.*}}) -> tensor<4xf32> attributes {no_inline}
func.func private @other(%x: tensor<4xf32>, %l: i32) -> tensor<4xf32> attributes {no_inline} {
  %c0 = arith.constant 0 : i32
  %done = arith.cmpi eq, %l, %c0 : i32
  %r = scf.if %done -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    %t = math.tanh %x : tensor<4xf32>
    %c1 = arith.constant 1 : i32
    %k = arith.subi %l, %c1 : i32
    %s = func.call @other(%t, %k) : (tensor<4xf32>, i32) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK: func.func @main
// CHECK: call @even_0(
// CHECK: call @other(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %a = func.call @even(%x, %c0, %c2) : (tensor<4xf32>, i32, i32) -> tensor<4xf32>
  %b = func.call @other(%a, %c2) : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
