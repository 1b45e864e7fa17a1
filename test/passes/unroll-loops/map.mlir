// A map over a range becomes an array of what each element gives; loops inside of loops are written
// out from the innermost on, and a loop of no steps gives what it began with.
// RUN: %batch-opt %s --unroll-loops --canonicalize --cse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<2x4xf32>>) : tensor<2x4xf32>

// CHECK-LABEL: func.func @map
// CHECK-NOT: cfb.map
// CHECK: %[[A:.*]] = arith.addf
// CHECK: %[[B:.*]] = arith.addf
// CHECK: cfb.array_create %[[A]], %[[B]] :
func.func @map(%x: tensor<4xf32>) -> !cfb.array<tensor<4xf32>> {
  %c2 = arith.constant 2 : i32
  %layers = cfb.array_range %c2 : !cfb.array<i32>
  %r = cfb.map %layers : (!cfb.array<i32>) -> !cfb.array<tensor<4xf32>> {
  ^bb0(%l: i32):
    %w = ml_program.global_load_const @w : tensor<2x4xf32>
    %m = cfb.lookup %w[%l] : tensor<2x4xf32> -> tensor<4xf32>
    %p = arith.addf %x, %m : tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %r : !cfb.array<tensor<4xf32>>
}

// CHECK-LABEL: func.func @nested
// CHECK-NOT: cfb.fold
// CHECK-COUNT-6: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %outer = cfb.array_range %c3 : !cfb.array<i32>
  %inner = cfb.array_range %c2 : !cfb.array<i32>
  %r = cfb.fold %outer init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %k: i32):
    %v = ml_program.global_load_const @w : tensor<2x4xf32>
    %b = cfb.lookup %v[%k] : tensor<2x4xf32> -> tensor<4xf32>
    %g = math.tanh %b : tensor<4xf32>
    %s = cfb.fold %inner init(%h) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%i: tensor<4xf32>, %l: i32):
      %w = ml_program.global_load_const @w : tensor<2x4xf32>
      %m = cfb.lookup %w[%l] : tensor<2x4xf32> -> tensor<4xf32>
      %o = arith.addf %i, %m : tensor<4xf32>
      cfb.yield %o : tensor<4xf32>
    }
    cfb.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @none
// CHECK-NEXT: return %arg0
func.func @none(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %layers = cfb.array_range %c0 : !cfb.array<i32>
  %r = cfb.fold %layers init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %l: i32):
    %w = ml_program.global_load_const @w : tensor<2x4xf32>
    %m = cfb.lookup %w[%l] : tensor<2x4xf32> -> tensor<4xf32>
    %p = arith.addf %h, %m : tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
