// Parts side by side have cotangents side by side: one concatenation, and no sum of padded tensors.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s

func.func @main(%x: tensor<6xf32>) -> tensor<2xf32> attributes {cfb.entry} {
  %h = cfb.block "main"(%x) : (tensor<6xf32>) -> (tensor<2xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%a: tensor<6xf32>):
    %p = tensor.extract_slice %a[0] [2] [1] : tensor<6xf32> to tensor<2xf32>
    %q = tensor.extract_slice %a[3] [2] [1] : tensor<6xf32> to tensor<2xf32>
    %r = arith.subf %p, %q : tensor<2xf32>
    cfb.yield %r : tensor<2xf32>
  }
  return %h : tensor<2xf32>
}

// CHECK-LABEL: func.func @main$gradient$0(
// CHECK-SAME: tensor<6xf32>, %{{[a-z0-9]*}}: tensor<2xf32>, %[[G:[a-z0-9]*]]: tensor<2xf32>) -> tensor<6xf32>
// CHECK: %[[MINUS:[a-z0-9]*]] = arith.negf %[[G]]
// CHECK: %[[ALL:[a-z0-9]*]] = tensor.concat dim(0) %[[G]], %{{[a-z0-9]*}}, %[[MINUS]], %{{[a-z0-9]*}} :
// CHECK-NOT: arith.addf
// CHECK: return %[[ALL]]
