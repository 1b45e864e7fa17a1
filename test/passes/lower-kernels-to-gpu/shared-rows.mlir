// A product of a row that all instances share, in a sum with one of their own: a tile is of rows, so
// what is shared is written for each of them first, by a kernel of its own.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu --verify-diagnostics | %FileCheck %s

ml_program.global private @start(#ml_program.extern : tensor<8xf32>) : tensor<8xf32>
ml_program.global private @w(#ml_program.extern : tensor<8x8xf32>) : tensor<8x8xf32>
ml_program.global private @u(#ml_program.extern : tensor<8x8xf32>) : tensor<8x8xf32>

// CHECK: gpu.func @step$0(
// CHECK-NOT: fma
// CHECK: gpu.func @step$1_small(
// CHECK: math.fma
cfb.kernel @step {
^bb0(%rows: index, %x: tensor<?x8xf32>):
  %zero = arith.constant 0.0 : f32
  %start = ml_program.global_load_const @start : tensor<8xf32>
  %w = ml_program.global_load_const @w : tensor<8x8xf32>
  %u = ml_program.global_load_const @u : tensor<8x8xf32>
  %e = tensor.empty(%rows) : tensor<?x8xf32>
  %s = linalg.broadcast ins(%start : tensor<8xf32>) outs(%e : tensor<?x8xf32>) dimensions = [0]
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %a = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = linalg.matmul ins(%s, %u : tensor<?x8xf32>, tensor<8x8xf32>) outs(%a : tensor<?x8xf32>) -> tensor<?x8xf32>
  cfb.yield %b : tensor<?x8xf32>
}
