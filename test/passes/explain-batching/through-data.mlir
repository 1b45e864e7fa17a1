// A matrix that a program keeps in an array or a constructor is named by what it is put there, and is not the
// instance's; one that may come with the instance too is both.
// RUN: %batch-opt %s --explain-batching --verify-diagnostics | %FileCheck %s

// CHECK-LABEL: cfb.kernel @f_0
// expected-remark @+1 {{block `f_0`: row operands 0 (tensor<4xf32>), 1 (tensor<4x4xf32>), 2 (tensor<4x4xf32>); no shared operands; called at 1 place}}
cfb.kernel @f_0 attributes {sym_visibility = "private"} {
^bb0(%rows: index, %x: tensor<?x4xf32>, %m: tensor<?x4x4xf32>, %n: tensor<?x4x4xf32>):
  %cst = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %z = linalg.fill ins(%cst : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{the matrix is operand 1 of block `f_0`, the parameter @v or computed by block `g_0`}}
  %p = linalg.batch_vecmat ins(%x, %m : tensor<?x4xf32>, tensor<?x4x4xf32>) outs(%z : tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-remark @+1 {{the matrix is operand 2 of block `f_0`, the parameter @v or part of the instance's data}}
  %q = linalg.batch_vecmat ins(%p, %n : tensor<?x4xf32>, tensor<?x4x4xf32>) outs(%z : tensor<?x4xf32>) -> tensor<?x4xf32>
  cfb.yield %q : tensor<?x4xf32>
}
// expected-remark @+1 {{block `g_0`: row operands 0 (tensor<4x4xf32>)}}
cfb.kernel @g_0 attributes {sym_visibility = "private"} {
^bb0(%rows: index, %m: tensor<?x4x4xf32>):
  cfb.yield %m : tensor<?x4x4xf32>
}
ml_program.global private @v(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>
cfb.adt @Given ["Given"] [[!cfb.lazy<tensor<4x4xf32>>]]

func.func @main(%x: !cfb.lazy<tensor<4xf32>>, %m: !cfb.lazy<tensor<4x4xf32>>, %given: !cfb.adt<@Given>, %i: i32) -> !cfb.lazy<tensor<4xf32>> {
  %v = cfb.param @v : !cfb.lazy<tensor<4x4xf32>>
  %g = cfb.record @g_0(%m) : (!cfb.lazy<tensor<4x4xf32>>) -> !cfb.lazy<tensor<4x4xf32>>
  %a = cfb.array_create %v, %g : (!cfb.lazy<tensor<4x4xf32>>, !cfb.lazy<tensor<4x4xf32>>) -> !cfb.array<!cfb.lazy<tensor<4x4xf32>>>
  %e = cfb.array_get %a[%i] : !cfb.array<!cfb.lazy<tensor<4x4xf32>>> -> (!cfb.lazy<tensor<4x4xf32>>)
  %own = cfb.construct "Given"(%v) : (!cfb.lazy<tensor<4x4xf32>>) -> !cfb.adt<@Given>
  %both = cfb.array_create %own, %given : (!cfb.adt<@Given>, !cfb.adt<@Given>) -> !cfb.array<!cfb.adt<@Given>>
  %one = cfb.array_get %both[%i] : !cfb.array<!cfb.adt<@Given>> -> (!cfb.adt<@Given>)
  %r = cfb.match %one : !cfb.adt<@Given> -> (!cfb.lazy<tensor<4xf32>>) ({
  ^bb0(%n: !cfb.lazy<tensor<4x4xf32>>):
    %h = cfb.record @f_0(%x, %e, %n) : (!cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<4x4xf32>>, !cfb.lazy<tensor<4x4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    cfb.yield %h : !cfb.lazy<tensor<4xf32>>
  })
  return %r : !cfb.lazy<tensor<4xf32>>
}
