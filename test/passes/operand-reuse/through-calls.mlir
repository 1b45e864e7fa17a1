// A parameter handed down a recursion is the same at every call, so the products with it are dense;
// an argument that differs by call is not shared. The shared argument's uses become loads.
// RUN: %batch-opt %s --operand-reuse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>

// CHECK-LABEL: func.func private @f
func.func private @f(%x: tensor<4xf32>, %m: tensor<4x4xf32>) -> tensor<4xf32> {
  // CHECK: %[[W:.*]] = ml_program.global_load_const @w
  // CHECK: cfb.block "f"(%{{.*}}, %[[W]]) {{.*}} attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]}
  %h = cfb.block "f"(%x, %m) : (tensor<4xf32>, tensor<4x4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4x4xf32>):
    %z = arith.constant dense<0.0> : tensor<4xf32>
    %p = linalg.vecmat ins(%a, %b : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  %r = func.call @f(%h, %m) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = ml_program.global_load_const @w : tensor<4x4xf32>
  %r = func.call @f(%x, %w) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
