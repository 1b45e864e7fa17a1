// A weight that is computed once a call is packed into scratch that all rows share, before the blocks of rows.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<8x40xf32>>) : tensor<8x40xf32>

// CHECK-LABEL: ragged.kernel @packed
// CHECK: %[[X:.*]] = ragged.operand row : memref<?x8xf32>
// CHECK: %[[W:.*]] = ragged.param @w : memref<8x40xf32>
// CHECK: %[[S:.*]] = ragged.scratch : memref<8x64xf32>
// CHECK: ragged.pack_panels over [8, 40] into %[[S]] : memref<8x64xf32> {
// CHECK: ragged.load %[[W]]
// CHECK: math.tanh
// CHECK: ragged.blocks
// CHECK-NEXT: ragged.product %[[X]] (d0) -> (0) rows 1 k 8 columns 40 with %[[S]] row 0
cfb.kernel @packed {
^bb0(%rows: index, %x: tensor<?x8xf32>):
  %w = ml_program.global_load_const @w : tensor<8x40xf32>
  %t = math.tanh %w : tensor<8x40xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %p = linalg.matmul ins(%x, %t : tensor<?x8xf32>, tensor<8x40xf32>) outs(%z : tensor<?x40xf32>) -> tensor<?x40xf32>
  cfb.yield %p : tensor<?x40xf32>
}
