// A product of what a product computes is a second launch. Between them is what the second one reads,
// after the pointwise work; the sums themselves are in no memory.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<24x40xf32>>) : tensor<24x40xf32>
ml_program.global private @v(#ml_program.extern<tensor<40x24xf32>>) : tensor<40x24xf32>

// One slot of 40 floats, in whole cache lines.
// CHECK: \22scratch_bytes_per_row\22:192,
// CHECK: gpu.func @layers$0_small
// CHECK: arith.negf
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
// CHECK: gpu.func @layers$0_large
// CHECK: gpu.func @layers$1_small
// CHECK: gpu.func @layers$1_large
// CHECK-NOT: gpu.func
cfb.kernel @layers {
^bb0(%rows: index, %x: tensor<?x24xf32>):
  %w = ml_program.global_load_const @w : tensor<24x40xf32>
  %v = ml_program.global_load_const @v : tensor<40x24xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x24xf32>, tensor<24x40xf32>) outs(%z : tensor<?x40xf32>) -> tensor<?x40xf32>
  %h = arith.negf %p : tensor<?x40xf32>
  %e1 = tensor.empty(%rows) : tensor<?x24xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x24xf32>) -> tensor<?x24xf32>
  %q = linalg.matmul ins(%h, %v : tensor<?x40xf32>, tensor<40x24xf32>) outs(%z1 : tensor<?x24xf32>) -> tensor<?x24xf32>
  cfb.yield %q : tensor<?x24xf32>
}
