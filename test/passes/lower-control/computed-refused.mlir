// Weights are computed in the order of their declarations, by kernels that nothing records.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics --plan-kernels --lower-kernels --lower-control -o /dev/null

// expected-error@+1 {{computed from a weight that is computed later}}
ml_program.global private @a(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32> {cfb.computed = @of_b}
ml_program.global private @b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32> {cfb.computed = @of_a}
cfb.kernel @of_b {
^bb0(%rows: index):
  %b = ml_program.global_load_const @b : tensor<4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %r = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<?x4xf32>) dimensions = [0]
  cfb.yield %r : tensor<?x4xf32>
}
cfb.kernel @of_a {
^bb0(%rows: index):
  %a = ml_program.global_load_const @a : tensor<4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %r = linalg.broadcast ins(%a : tensor<4xf32>) outs(%e : tensor<?x4xf32>) dimensions = [0]
  cfb.yield %r : tensor<?x4xf32>
}
func.func @main() -> i32
    attributes {cfb.entry, cfb.arguments = [], cfb.argument_types = [], cfb.result_type = i32} {
  %0 = arith.constant 0 : i32
  return %0 : i32
}

// -----

cfb.kernel @double {
^bb0(%rows: index):
  %w = arith.constant dense<2.0> : tensor<4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %r = linalg.broadcast ins(%w : tensor<4xf32>) outs(%e : tensor<?x4xf32>) dimensions = [0]
  cfb.yield %r : tensor<?x4xf32>
}
ml_program.global private @w2(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32> {cfb.computed = @double}
func.func @main() -> !cfb.lazy<tensor<4xf32>>
    attributes {cfb.entry, cfb.arguments = [], cfb.argument_types = [], cfb.result_type = tensor<4xf32>} {
  // expected-error@+1 {{kernel `double` runs at load; `cfb.param` reads what it computes}}
  %h = cfb.record @double() : () -> !cfb.lazy<tensor<4xf32>>
  return %h : !cfb.lazy<tensor<4xf32>>
}
