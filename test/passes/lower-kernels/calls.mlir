// A kernel over calls: its function loops over calls, reads each call's lengths and the first row of
// its ragged operands and results, and its loops end at the lengths, or where its work item of the rows
// does. What the runtime must know of the rows that a call has is in its description.
// RUN: %batch-opt %s --plan-kernels --divide-calls --lower-kernels | %FileCheck %s

!x = tensor<?x?x28xf32, #ragged.shape<@batch, @n(@batch), _>>
!s = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// CHECK: func.func @sums(%[[BEGIN:.*]]: i64, %[[END:.*]]: i64
// CHECK-SAME: \22extents\22:[{\22lengths\22:[0],\22times\22:1}]
// CHECK-SAME: \22rows\22:0,\22unit\22:\22calls\22
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: arith.extui
// CHECK: %[[FROM:.*]] = arith.extui
// CHECK: %[[TO:.*]] = arith.extui
// CHECK: %[[COUNT:.*]] = arith.subi %[[TO]], %[[FROM]]
// CHECK: scf.for %{{.*}} to %[[COUNT]]
// CHECK-NOT: cfb.kernel
cfb.kernel @sums attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c1 : !x
  %e = tensor.empty(%calls, %d) : !s
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
  %s = linalg.reduce { arith.addf } ins(%x : !x) outs(%z : !s) dimensions = [2]
  cfb.yield %s : !s
}
