// A kernel that has no form for a GPU stays on the CPU alone, with a remark that says which and why;
// the others are lowered.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu --verify-diagnostics | %FileCheck %s

// CHECK: cfb.gpu_kernels = {good = "
// CHECK-NOT: rest
// CHECK: gpu.func @good$0(
// CHECK: cfb.kernel @rest
cfb.kernel @calls attributes {lengths = [@n], rows = [], unit = #cfb<unit calls>} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x3xf32>):
  // expected-remark @below {{no code for GPUs, on which its program does not run: `arith.remf` is not supported there}}
  %r = arith.remf %x, %x : tensor<?x3xf32>
  cfb.yield %r : tensor<?x3xf32>
}

cfb.kernel @rest {
^bb0(%rows: index, %x: tensor<?x3xf32>, %y: tensor<?x3xf32>):
  // expected-remark @below {{no code for GPUs, on which its program does not run: `arith.remf` is not supported there}}
  %r = arith.remf %x, %y : tensor<?x3xf32>
  cfb.yield %r : tensor<?x3xf32>
}

cfb.kernel @good {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  %r = arith.negf %x : tensor<?x3xf32>
  cfb.yield %r : tensor<?x3xf32>
}
