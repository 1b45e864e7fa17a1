// Where only gradients of parameters are wanted, what the entry takes has no cotangent: its products are not
// computed. What blocks pass on has one.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s
// RUN: sed 's/gradients parameters/gradients all/' %s | %batch-opt --differentiate-blocks --canonicalize --cse | %FileCheck %s --check-prefix=ALL

module attributes {cfb.gradients = #cfb<gradients parameters>} {
  ml_program.global private @w(#ml_program.extern<tensor<3x4xf32>>) : tensor<3x4xf32>

  func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> attributes {cfb.entry} {
    %w = ml_program.global_load_const @w : tensor<3x4xf32>
    %p = cfb.block "first"(%x, %w) : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32> attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
    ^bb0(%a: tensor<3xf32>, %m: tensor<3x4xf32>):
      %z = arith.constant dense<0.0> : tensor<4xf32>
      %r = linalg.vecmat ins(%a, %m : tensor<3xf32>, tensor<3x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
      cfb.yield %r : tensor<4xf32>
    }
    %q = cfb.block "second"(%p) : (tensor<4xf32>) -> tensor<4xf32> attributes {reuse = [#cfb<reuse row>]} {
    ^bb0(%a: tensor<4xf32>):
      %r = arith.mulf %a, %a : tensor<4xf32>
      cfb.yield %r : tensor<4xf32>
    }
    return %q : tensor<4xf32>
  }
}

// CHECK-LABEL: func.func @first$gradient$0(
// CHECK-SAME: results = []
// CHECK-SAME: sites = [{left = #cfb.part<argument 0>, {{.*}}right = #cfb.part<argument 2>
// CHECK-NOT: linalg.vecmat
// CHECK: return
// CHECK-LABEL: func.func @second$gradient$0(
// CHECK-SAME: results = [#cfb.part<operand 0>]

// ALL-LABEL: func.func @first$gradient$0(
// ALL-SAME: results = [#cfb.part<operand 0>]
// ALL: linalg.vecmat
// ALL-LABEL: func.func @second$gradient$0(
