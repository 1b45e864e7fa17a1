// A layer for each step of a known number of steps: each reads its own part of the parameter, which
// all rows share. The loop, its array and the lookups are gone.
// RUN: %batch-opt %s --unroll-loops --canonicalize --cse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<2x4x4xf32>>) : tensor<2x4x4xf32>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NOT: cfb.
// CHECK: %[[W:.*]] = ml_program.global_load_const @w
// CHECK: tensor.extract_slice %[[W]][0, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<2x4x4xf32> to tensor<1x4x4xf32>
// CHECK: %[[A:.*]] = linalg.vecmat ins(%[[X]],
// CHECK: tensor.extract_slice %[[W]][1, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<2x4x4xf32> to tensor<1x4x4xf32>
// CHECK: %[[B:.*]] = linalg.vecmat ins(%[[A]],
// CHECK-NOT: cfb.
// CHECK: return %[[B]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c2 = arith.constant 2 : i32
  %layers = cfb.array_range %c2 : !cfb.array<i32>
  %r = cfb.fold %layers init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %l: i32):
    %w = ml_program.global_load_const @w : tensor<2x4x4xf32>
    %m = cfb.lookup %w[%l] : tensor<2x4x4xf32> -> tensor<4x4xf32>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %p = linalg.vecmat ins(%h, %m : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
