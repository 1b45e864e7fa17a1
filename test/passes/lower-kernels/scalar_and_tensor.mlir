// One kernel recorded with a host scalar and with a tensor of rank 0 becomes two functions, because
// the two reach it in different ways.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK: func.func @negate({{.*}}\22operands\22:[{\22scalar\22:\22f32\22}]
// CHECK: func.func @negate_scalars_1({{.*}}\22operands\22:[{\22row\22:{\22pool\22:{\22elem\22:\22f32\22,\22shape\22:[]}}}]
cfb.kernel @negate {
^bb0(%rows: index, %x: tensor<?xf32>):
  %n = arith.negf %x : tensor<?xf32>
  cfb.yield %n : tensor<?xf32>
}
func.func @main(%s: f32) -> !cfb.lazy<tensor<f32>> {
  // CHECK: %[[R:.*]] = cfb.record @negate(%{{.*}}) : (f32)
  // CHECK: cfb.record @negate_scalars_1(%[[R]]) : (!cfb.lazy<tensor<f32>>)
  %r = cfb.record @negate(%s) : (f32) -> !cfb.lazy<tensor<f32>>
  %t = cfb.record @negate(%r) : (!cfb.lazy<tensor<f32>>) -> !cfb.lazy<tensor<f32>>
  return %t : !cfb.lazy<tensor<f32>>
}
