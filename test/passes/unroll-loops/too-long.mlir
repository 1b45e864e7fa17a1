// A loop that would become a huge program is left as it is, with a remark that says what that costs.
// RUN: %batch-opt %s --unroll-loops --verify-diagnostics | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<9000x4xf32>>) : tensor<9000x4xf32>

// CHECK: cfb.fold
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c9000 = arith.constant 9000 : i32
  %layers = cfb.array_range %c9000 : !cfb.array<i32>
  // expected-remark @+1 {{it would have 36000 operations, more than 16384}}
  %r = cfb.fold %layers init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %l: i32):
    %w = ml_program.global_load_const @w : tensor<9000x4xf32>
    %m = cfb.lookup %w[%l] : tensor<9000x4xf32> -> tensor<4xf32>
    %p = arith.addf %h, %m : tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
