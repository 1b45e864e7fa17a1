// A left side that lies in memory with its terms side by side is multiplied where it is, but for the last rows that are
// fewer than a tile: these are packed. While a tile is computed, the memory that the next one writes is asked for.
// RUN: %batch-opt %s --plan-kernels --split-tails --hoist-lengths --lower-kernels | %FileCheck %s

!a = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @d(@batch)>>
!b = tensor<?x?x?xf32, #ragged.shape<@batch, @d(@batch), @n(@batch)>>
!c = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>

// CHECK: func.func @product
// CHECK: arith.remui
// CHECK-NOT: llvm.intr.prefetch
// CHECK: llvm.call @cohort_block(
// CHECK: scf.if
// CHECK: llvm.intr.prefetch
// CHECK: llvm.store
// CHECK: llvm.call @cohort_block(
// CHECK: llvm.func internal @cohort_block(
// CHECK: llvm.intr.prefetch
// CHECK: llvm.call @cohort_block_r12_v2(
cfb.kernel @product attributes {unit = #cfb<unit calls>, lengths = [@n, @m, @d], rows = [@m, @n]} {
^bb0(%calls: index, %ln: tensor<?xindex>, %lm: tensor<?xindex>, %ld: tensor<?xindex>, %a: !a, %b: !b):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c1 : !a
  %n = tensor.dim %b, %c2 : !b
  %e = tensor.empty(%calls, %m, %n) : !c
  %z = linalg.fill ins(%zero : f32) outs(%e : !c) -> !c
  %p = linalg.batch_matmul ins(%a, %b : !a, !b) outs(%z : !c) -> !c
  cfb.yield %p : !c
}
