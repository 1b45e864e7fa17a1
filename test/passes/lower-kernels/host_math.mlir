// A transcendental function of host scalars is code once, where the control program has many of it: LLVM takes more than
// twice the time for a function of twice the length. Few stay where they are, and so does what kernels compute.
// RUN: %batch-opt %s --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-COUNT-5: llvm.call @cohort_host_math_sin(%{{.*}}) : (f32) -> f32
// CHECK-NOT: llvm.call
// CHECK: return
// CHECK: llvm.func internal @cohort_host_math_sin(%{{.*}}: f32) -> f32 attributes {no_inline} {
// CHECK: math.roundeven
// CHECK: llvm.return %{{.*}} : f32
// CHECK-NOT: @cohort_host_math_exp
func.func @main(%x: f32) -> f32
    attributes {cfb.entry, cfb.arguments = ["x"], cfb.argument_types = [f32], cfb.result_type = f32} {
  %a = math.sin %x : f32
  %b = math.sin %a : f32
  %c = math.sin %b : f32
  %d = math.sin %c : f32
  %e = math.sin %d : f32
  %f = math.exp %e : f32
  return %f : f32
}
