// A block gets its backward: cotangents of its row operands, and sites of its parameters. What it takes are
// the operands, the results and their cotangents.
// RUN: %batch-opt %s --differentiate-blocks --canonicalize --cse | %FileCheck %s
// RUN: %batch-opt %s --differentiate-blocks | %batch-opt --canonicalize --cse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<3x4xf32>>) : tensor<3x4xf32>
ml_program.global private @b(#ml_program.extern<tensor<2x4xf32>>) : tensor<2x4xf32>

func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> attributes {cfb.entry} {
  %w = ml_program.global_load_const @w : tensor<3x4xf32>
  %b = ml_program.global_load_const @b : tensor<2x4xf32>
  // CHECK: cfb.block "main"
  // CHECK-SAME: gradients = ["main$gradient$0"]
  %h = cfb.block "main"(%x, %w, %b) : (tensor<3xf32>, tensor<3x4xf32>, tensor<2x4xf32>) -> (tensor<4xf32>)
      attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>, #cfb<reuse shared>]} {
  ^bb0(%a: tensor<3xf32>, %m: tensor<3x4xf32>, %c: tensor<2x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %p = linalg.vecmat ins(%a, %m : tensor<3xf32>, tensor<3x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
    %s = tensor.extract_slice %c[1, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<1x4xf32>
    %v = tensor.collapse_shape %s [[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
    %q = arith.addf %p, %v : tensor<4xf32>
    %t = math.tanh %q : tensor<4xf32>
    cfb.yield %t : tensor<4xf32>
  }
  return %h : tensor<4xf32>
}

// The slope of tanh is made of its result; the parameters themselves are not results, but sites: the
// matrix the sum of the products of argument 0 and result 1, the vector that of the rows of result 1,
// from element 4 of the parameter on.
// CHECK-LABEL: func.func @main$gradient$0(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<3xf32>, %[[Y:[a-z0-9]*]]: tensor<4xf32>, %[[G:[a-z0-9]*]]: tensor<4xf32>) -> (tensor<3xf32>, tensor<4xf32>)
// CHECK-SAME: arguments = [#cfb.part<operand 0>, #cfb.part<result 0>, #cfb.part<cotangent 0>]
// CHECK-SAME: results = [#cfb.part<operand 0>, #cfb.part<site>]
// CHECK-SAME: sites = [{offset = 4 : i64, parameter = @b, right = #cfb.part<result 1>, shape = array<i64: 4>, strides = array<i64: 1>}
// CHECK-SAME: {left = #cfb.part<argument 0>, offset = 0 : i64, parameter = @w, right = #cfb.part<result 1>, shape = array<i64: 3, 4>, strides = array<i64: 4, 1>}
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK: %[[SLOPE:.*]] = arith.subf %{{.*}}, %[[SQUARE]]
// CHECK: %[[DQ:.*]] = arith.mulf %[[G]], %[[SLOPE]]
// CHECK: %[[TURNED:.*]] = linalg.transpose
// CHECK: %[[DX:.*]] = linalg.vecmat ins(%[[DQ]], %[[TURNED]]
// CHECK: return %[[DX]], %[[DQ]]

// Cotangents are added up, made and stacked by functions of the module's own.
// CHECK-DAG: func.func @gradient$add$4
// CHECK-DAG: func.func @gradient$add_runs$4
// CHECK-DAG: func.func @gradient$stack$4
// CHECK-DAG: func.func @gradient$zero$4
// CHECK-DAG: func.func @gradient$one$
