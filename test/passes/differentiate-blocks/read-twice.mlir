// What two blocks read gets a cotangent from each. Its block has a second gradient function, which takes both
// and adds them up itself; a block whose result is read once has none.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s
// RUN: %batch-opt %s --differentiate-blocks | %batch-opt --canonicalize --cse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<3x4xf32>>) : tensor<3x4xf32>

func.func @main(%x: tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {cfb.entry} {
  %w = ml_program.global_load_const @w : tensor<3x4xf32>
  // CHECK: cfb.block "main"
  // CHECK-SAME: gradients = ["main$gradient$0", "main$gradient$1"]
  %h = cfb.block "main"(%x, %w) : (tensor<3xf32>, tensor<3x4xf32>) -> (tensor<4xf32>)
      attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%a: tensor<3xf32>, %m: tensor<3x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %p = linalg.vecmat ins(%a, %m : tensor<3xf32>, tensor<3x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  // CHECK: cfb.block "main"
  // CHECK-SAME: gradients = ["main$gradient$2"]
  %y = cfb.block "main"(%h) : (tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%a: tensor<4xf32>):
    %s = math.tanh %a : tensor<4xf32>
    cfb.yield %s : tensor<4xf32>
  }
  return %y, %h : tensor<4xf32>, tensor<4xf32>
}

// The rows of the site are what comes in here,
// CHECK-LABEL: func.func @main$gradient$0(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<3xf32>, %[[Y:[a-z0-9]*]]: tensor<4xf32>, %[[G:[a-z0-9]*]]: tensor<4xf32>) -> tensor<3xf32>
// CHECK-SAME: arguments = [#cfb.part<operand 0>, #cfb.part<result 0>, #cfb.part<cotangent 0>]
// CHECK-SAME: left = #cfb.part<argument 0>, offset = 0 : i64, parameter = @w, right = #cfb.part<argument 2>
// CHECK: linalg.vecmat ins(%[[G]],

// and their sum there.
// CHECK-LABEL: func.func @main$gradient$1(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<3xf32>, %[[Y:[a-z0-9]*]]: tensor<4xf32>, %[[G:[a-z0-9]*]]: tensor<4xf32>, %[[H:[a-z0-9]*]]: tensor<4xf32>) -> (tensor<3xf32>, tensor<4xf32>)
// CHECK-SAME: arguments = [#cfb.part<operand 0>, #cfb.part<result 0>, #cfb.part<cotangent 0>, #cfb.part<addend 0>]
// CHECK-SAME: results = [#cfb.part<operand 0>, #cfb.part<site>]
// CHECK-SAME: left = #cfb.part<argument 0>, offset = 0 : i64, parameter = @w, right = #cfb.part<result 1>
// CHECK: %[[SUM:.*]] = arith.addf %[[G]], %[[H]]
// CHECK: %[[DX:.*]] = linalg.vecmat ins(%[[SUM]],
// CHECK: return %[[DX]], %[[SUM]]

// CHECK-LABEL: func.func @main$gradient$2(
// CHECK-NOT: addend
