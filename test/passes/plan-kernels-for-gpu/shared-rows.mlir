// A product of a row that all instances share, in a sum with one of their own: a tile is of rows, so what is shared is
// written for each of them first, by a kernel of its own. Both products are one chain of sums.
// RUN: %batch-opt %s --plan-kernels-for-gpu 2>/dev/null | %FileCheck %s

// CHECK: ragged.kernel @step {
// CHECK: %[[S:.*]] = ragged.scratch : memref<?x8xf32>
// CHECK: ragged.blocks of 128 tile 1 {
// CHECK: ragged.store %{{.*}}, %[[S]]
// CHECK: ragged.tiles over [8]
// CHECK: %[[P:.*]] = ragged.products
// CHECK-NEXT: ragged.products %[[S]] () -> (0) with {{.*}} from %[[P]] :
ml_program.global private @start(#ml_program.extern : tensor<8xf32>) : tensor<8xf32>
ml_program.global private @w(#ml_program.extern : tensor<8x8xf32>) : tensor<8x8xf32>
ml_program.global private @u(#ml_program.extern : tensor<8x8xf32>) : tensor<8x8xf32>

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
