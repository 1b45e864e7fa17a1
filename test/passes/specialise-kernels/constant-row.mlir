// A row that may be a constant is asked for where it is recorded; where it can be nothing else, nothing is asked,
// and where it cannot be, nothing changes. A product of zeros that starts from rows is that start and the sum of
// the zeros, which is taken from -0: so no bit changes, whatever the weights.
// RUN: %batch-opt %s --specialise-kernels | %FileCheck %s

ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>

// CHECK: cfb.kernel @step_base
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x64xf32>):
// CHECK: %[[H:.*]] = arith.constant dense<0.000000e+00> : tensor<64xf32>
// CHECK: %[[HS:.*]] = linalg.broadcast ins(%[[H]] : tensor<64xf32>)
// CHECK: %[[M:.*]] = arith.constant dense<-0.000000e+00> : tensor<64xf32>
// CHECK: %[[MS:.*]] = linalg.broadcast ins(%[[M]] : tensor<64xf32>)
// CHECK: %[[Z:.*]] = linalg.matmul ins(%[[HS]], %{{.*}}) outs(%[[MS]] :
// CHECK: %[[S:.*]] = arith.addf %[[X]], %[[Z]]
// CHECK: cfb.yield %[[S]]
cfb.kernel @step {
^bb0(%rows: index, %h: tensor<?x64xf32>, %x: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %p = linalg.matmul ins(%h, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%x : tensor<?x64xf32>) -> tensor<?x64xf32>
  cfb.yield %p : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @turns
// CHECK: scf.while
// CHECK: %[[ZERO:.*]] = cfb.constant dense<0.000000e+00> : tensor<64xf32>
// CHECK: %[[FIRST:.*]] = cfb.same %[[C:.*]], %[[ZERO]] : !cfb.lazy<tensor<64xf32>>
// CHECK: scf.if %[[FIRST]]
// CHECK: cfb.record @step_base(%{{[^,]*}}) :
// CHECK: else
// CHECK: cfb.record @step(%[[C]], %{{.*}}) :
func.func @turns(%x: !cfb.lazy<tensor<64xf32>>, %go: i1) -> !cfb.lazy<tensor<64xf32>> {
  %z = cfb.constant dense<0.0> : tensor<64xf32> -> !cfb.lazy<tensor<64xf32>>
  %r = scf.while (%c = %z) : (!cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>> {
    scf.condition(%go) %c : !cfb.lazy<tensor<64xf32>>
  } do {
  ^bb0(%c: !cfb.lazy<tensor<64xf32>>):
    %n = cfb.record @step(%c, %x) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
    scf.yield %n : !cfb.lazy<tensor<64xf32>>
  }
  return %r : !cfb.lazy<tensor<64xf32>>
}

// CHECK-LABEL: func.func @once
// CHECK-NOT: cfb.same
// CHECK: cfb.record @step_base(%{{[^,]*}}) :
// CHECK: cfb.record @step(
func.func @once(%x: !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>> {
  %z = cfb.constant dense<0.0> : tensor<64xf32> -> !cfb.lazy<tensor<64xf32>>
  %a = cfb.record @step(%z, %x) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  %b = cfb.record @step(%a, %x) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  return %b : !cfb.lazy<tensor<64xf32>>
}
