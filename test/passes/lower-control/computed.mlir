// A weight that is computed is listed behind the parameters, with its kernel, and is numbered after
// them where kernels and sources name it.
// RUN: %batch-opt %s --plan-kernels --lower-kernels --lower-control | %FileCheck %s

// CHECK: \22params\22:[{\22name\22:\22w\22,\22elem\22:\22f32\22,\22shape\22:[4]}]
// CHECK-SAME: \22sources\22:[{\22whole\22:{\22param\22:1,\22pool\22:0}}]
// CHECK-SAME: \22constants\22:[{\22plain\22:{\22param\22:0}}]
// CHECK-SAME: \22computed\22:[{\22weight\22:{\22name\22:\22w2\22,\22elem\22:\22f32\22,\22shape\22:[4]},\22kernel\22:0}]
cfb.kernel @double attributes {sym_visibility = "private"} {
^bb0(%rows: index):
  %w = ml_program.global_load_const @w : tensor<4xf32>
  %s = arith.addf %w, %w : tensor<4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %r = linalg.broadcast ins(%s : tensor<4xf32>) outs(%e : tensor<?x4xf32>) dimensions = [0]
  cfb.yield %r : tensor<?x4xf32>
}
ml_program.global private @w2(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32> {cfb.computed = @double}
ml_program.global public @w(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>
func.func @main() -> !cfb.lazy<tensor<4xf32>>
    attributes {cfb.entry, cfb.arguments = [], cfb.argument_types = [], cfb.result_type = tensor<4xf32>} {
  %h = cfb.param @w2 : !cfb.lazy<tensor<4xf32>>
  return %h : !cfb.lazy<tensor<4xf32>>
}
