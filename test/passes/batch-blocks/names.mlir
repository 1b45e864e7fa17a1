// A kernel is named after its function and must not take the name of anything in the program.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global public @f_0(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK: cfb.kernel @f_2
func.func private @f_1(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @f(
// CHECK: cfb.record @f_2
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = cfb.block "f"(%x) : (tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%i: tensor<4xf32>):
    %r = math.exp %i : tensor<4xf32>
    cfb.yield %r : tensor<4xf32>
  }
  return %a : tensor<4xf32>
}
