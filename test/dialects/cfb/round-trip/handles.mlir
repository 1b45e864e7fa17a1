// Parameters, their rows, and constants as values of the control program, and whether two are the same.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

ml_program.global private @emb(#ml_program.extern<tensor<40x13xf32>>) : tensor<40x13xf32>
ml_program.global private @hf(#ml_program.extern<tensor<28xf32>>) : tensor<28xf32>

// CHECK-LABEL: func.func @handles
func.func @handles(%i: i32) {
  // CHECK: cfb.param @hf : !cfb.lazy<tensor<28xf32>>
  %0 = cfb.param @hf : !cfb.lazy<tensor<28xf32>>
  // CHECK: cfb.param_row @emb[%{{.*}}] : !cfb.lazy<tensor<13xf32>>
  %1 = cfb.param_row @emb[%i] : !cfb.lazy<tensor<13xf32>>
  // CHECK: cfb.param_row @hf[%{{.*}}] : !cfb.lazy<tensor<f32>>
  %2 = cfb.param_row @hf[%i] : !cfb.lazy<tensor<f32>>
  // CHECK: cfb.constant dense<0.000000e+00> : tensor<28xf32> -> !cfb.lazy<tensor<28xf32>>
  %3 = cfb.constant dense<0.0> : tensor<28xf32> -> !cfb.lazy<tensor<28xf32>>
  // CHECK: cfb.same %{{.*}}, %{{.*}} : !cfb.lazy<tensor<28xf32>>
  %4 = cfb.same %0, %3 : !cfb.lazy<tensor<28xf32>>
  return
}
