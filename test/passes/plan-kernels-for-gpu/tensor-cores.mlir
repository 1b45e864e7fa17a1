// With a precision that the module names, tiles are for tensor cores, which take sixteen terms of sides that are
// computed as well.
// RUN: %batch-opt %s --round-products-tf32 --plan-kernels-for-gpu | %FileCheck %s

!a = tensor<?x?x16xf32, #ragged.shape<@batch, @m(@batch), _>>
!r = tensor<?x?x24xf32, #ragged.shape<@batch, @m(@batch), _>>

// CHECK: ragged.matmul over [@m, 24] depth [16] blocks [32, 16] into
// CHECK: arith.negf
// CHECK: right {
cfb.kernel @product attributes {lengths = [@m], rows = [@m], unit = #cfb<unit calls>} {
^bb0(%calls: index, %lm: tensor<?xindex>, %a: !a, %b: tensor<?x16x24xf32>):
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %dm = tensor.dim %a, %c1 : !a
  %x = arith.negf %a : !a
  %e = tensor.empty(%calls, %dm) : !r
  %z = linalg.fill ins(%zero : f32) outs(%e : !r) -> !r
  %p = linalg.batch_matmul ins(%x, %b : !a, tensor<?x16x24xf32>) outs(%z : !r) -> !r
  cfb.yield %p : !r
}
