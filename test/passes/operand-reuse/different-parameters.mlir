// A function called with different parameters keeps a matrix a row: correct, slower, and said so.
// RUN: %batch-opt %s --operand-reuse --verify-diagnostics | %FileCheck %s

ml_program.global private @v(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>
ml_program.global private @w(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>

// CHECK-LABEL: func.func private @f
// expected-remark @+1 {{argument 1 of `f` is a different parameter at different calls}}
func.func private @f(%x: tensor<4xf32>, %m: tensor<4x4xf32>) -> tensor<4xf32> {
  // CHECK: reuse = [#cfb<reuse row>, #cfb<reuse row>]
  %h = cfb.block "f"(%x, %m) : (tensor<4xf32>, tensor<4x4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4x4xf32>):
    %z = arith.constant dense<0.0> : tensor<4xf32>
    %p = linalg.vecmat ins(%a, %b : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %h : tensor<4xf32>
}

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = ml_program.global_load_const @v : tensor<4x4xf32>
  %w = ml_program.global_load_const @w : tensor<4x4xf32>
  %a = func.call @f(%x, %v) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %r = func.call @f(%a, %w) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
