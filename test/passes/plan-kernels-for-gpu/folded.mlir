// A fold of a product's rows reads sums that other threads have: on a GPU it computes them again, where on the CPU it
// is computed when all columns are there. What is made of the one sum at its own index reads that.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s --check-prefix=CPU
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s

!x = tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
!t = tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!v = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
!r = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>

// CPU: by_rows finish {
// CPU: ragged.reduce over [@n] from
// CPU-NEXT: ^bb0
// CPU-NEXT: ragged.load

// CHECK: %[[R:.*]] = ragged.result of [@n, @n]
// CHECK: ragged.matmul over [@n, @n] depth [16] blocks [64, 16] into %[[R]]
// CHECK: } finish {
// CHECK-NEXT: ragged.load %[[R]] (d0, d1) -> (d0, d1)
// CHECK-NOT: ragged.load %[[R]]
// CHECK: ragged.reduce over [@n] from
// CHECK: ragged.reduce over [16] from
// CHECK-NOT: ragged.load %[[R]]
// CHECK: arith.divf
// CHECK-NEXT: ragged.yield
cfb.kernel @normed attributes {lengths = [@n], rows = [@n, @n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>, %x: !x, %y: !x):
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : !x
  %et = tensor.empty(%calls, %d) : !t
  %t = linalg.transpose ins(%y : !x) outs(%et : !t) permutation = [0, 2, 1]
  %e = tensor.empty(%calls, %d, %d) : !r
  %z = linalg.fill ins(%zero : f32) outs(%e : !r) -> !r
  %p = linalg.batch_matmul ins(%x, %t : !x, !t) outs(%z : !r) -> !r
  %ev = tensor.empty(%calls, %d) : !v
  %zv = linalg.fill ins(%zero : f32) outs(%ev : !v) -> !v
  %s = linalg.reduce { arith.addf } ins(%p : !r) outs(%zv : !v) dimensions = [2]
  %b = linalg.broadcast ins(%s : !v) outs(%e : !r) dimensions = [2]
  %q = arith.divf %p, %b : !r
  cfb.yield %q : !r
}
