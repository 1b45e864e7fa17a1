// Blocks that compute the same share a kernel, so that their rows are batched together.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0
// CHECK-NOT: cfb.kernel
// CHECK-LABEL: func.func @f
// CHECK-COUNT-2: cfb.record @f_0
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = cfb.block "f"(%x) : (tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%i: tensor<4xf32>):
    %r = math.exp %i : tensor<4xf32>
    cfb.yield %r : tensor<4xf32>
  }
  %b = cfb.block "f"(%a) : (tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%i: tensor<4xf32>):
    %r = math.exp %i : tensor<4xf32>
    cfb.yield %r : tensor<4xf32>
  }
  return %b : tensor<4xf32>
}
