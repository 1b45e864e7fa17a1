// A product over calls is packed and multiplied in blocks: the scratch that it needs is known although
// the lengths are not, and what is elementwise around it is computed in the blocks.
// A call's rows count the dims of its result in their order, whatever the order of the lengths.
// RUN: %batch-opt %s --plan-kernels --split-tails --hoist-lengths --lower-kernels | %FileCheck %s

!a = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @d(@batch)>>
!b = tensor<?x?x?xf32, #ragged.shape<@batch, @d(@batch), @n(@batch)>>
!c = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>

// CHECK: func.func @product
// CHECK-SAME: \22scratch_bytes\22:{{[1-9]}}
// CHECK-SAME: \22extents\22:[{\22lengths\22:[1,0],\22times\22:1}
// CHECK-SAME: \22flops\22:[{\22lengths\22:[1,0,2],\22times\22:2}]
// CHECK: arith.negf %{{.*}} : vector<16xf32>
// CHECK: llvm.call @cohort_block(
// CHECK: scf.if
// CHECK: arith.maximumf %{{.*}} : vector<16xf32>
// CHECK: llvm.func internal @cohort_block_r12_v2
cfb.kernel @product attributes {unit = #cfb<unit calls>, lengths = [@n, @m, @d], rows = [@m, @n]} {
^bb0(%calls: index, %ln: tensor<?xindex>, %lm: tensor<?xindex>, %ld: tensor<?xindex>, %a: !a, %b: !b):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c1 : !a
  %n = tensor.dim %b, %c2 : !b
  %e = tensor.empty(%calls, %m, %n) : !c
  %z = linalg.fill ins(%zero : f32) outs(%e : !c) -> !c
  %minus = arith.negf %a : !a
  %p = linalg.batch_matmul ins(%minus, %b : !a, !b) outs(%z : !c) -> !c
  %r = arith.maximumf %p, %z : !c
  cfb.yield %r : !c
}
