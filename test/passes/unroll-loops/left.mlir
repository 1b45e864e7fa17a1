// What gains nothing stays: a count that the instance decides, a loop that picks no parameter, a row
// that the control program hands on only; and an index out of bounds stays the instance's error.
// RUN: %batch-opt %s --unroll-loops | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<2x4xf32>>) : tensor<2x4xf32>

// CHECK-LABEL: func.func @count
// CHECK: cfb.fold
func.func @count(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %layers = cfb.array_range %n : !cfb.array<i32>
  %r = cfb.fold %layers init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %l: i32):
    %w = ml_program.global_load_const @w : tensor<2x4xf32>
    %m = cfb.lookup %w[%l] : tensor<2x4xf32> -> tensor<4xf32>
    %p = arith.addf %h, %m : tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @same
// CHECK: cfb.fold
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c2 = arith.constant 2 : i32
  %layers = cfb.array_range %c2 : !cfb.array<i32>
  %r = cfb.fold %layers init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %l: i32):
    %p = math.tanh %h : tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @handed_on
// CHECK: cfb.lookup
// CHECK-NOT: tensor.extract_slice
func.func @handed_on() -> tensor<4xf32> {
  %c1 = arith.constant 1 : i32
  %w = ml_program.global_load_const @w : tensor<2x4xf32>
  %m = cfb.lookup %w[%c1] : tensor<2x4xf32> -> tensor<4xf32>
  return %m : tensor<4xf32>
}

// CHECK-LABEL: func.func @outside
// CHECK: cfb.lookup
// CHECK-NOT: tensor.extract_slice
func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c2 = arith.constant 2 : i32
  %w = ml_program.global_load_const @w : tensor<2x4xf32>
  %m = cfb.lookup %w[%c2] : tensor<2x4xf32> -> tensor<4xf32>
  %p = arith.addf %x, %m : tensor<4xf32>
  return %p : tensor<4xf32>
}
