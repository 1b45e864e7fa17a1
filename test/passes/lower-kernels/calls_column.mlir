// A part of a concatenation that is one column is stored element by element: the elements that lie next to
// each other in memory are those of its row, which other parts have computed.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

!x = tensor<?x?x?x4xf32, #ragged.shape<@batch, @m(@batch), @n(@batch), _>>
!one = tensor<?x?x?x1xf32, #ragged.shape<@batch, @m(@batch), @n(@batch), _>>
!y = tensor<?x?x?x5xf32, #ragged.shape<@batch, @m(@batch), @n(@batch), _>>

// CHECK: func.func @joined
// CHECK: llvm.intr.masked.store
// CHECK-NOT: masked.store
// CHECK-NOT: llvm.store {{.*}} : vector
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr
// CHECK-NOT: masked.store
// CHECK: return
cfb.kernel @joined attributes {unit = #cfb<unit calls>, lengths = [@m, @n], rows = [@m, @n]} {
^bb0(%calls: index, %m: tensor<?xindex>, %n: tensor<?xindex>, %x: !x):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c1 : !x
  %columns = tensor.dim %x, %c2 : !x
  %e = tensor.empty(%calls, %rows, %columns) : !one
  %z = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %a = tensor.cast %x : !x to tensor<?x?x?x4xf32>
  %b = tensor.cast %z : !one to tensor<?x?x?x1xf32>
  %j = tensor.concat dim(3) %a, %b : (tensor<?x?x?x4xf32>, tensor<?x?x?x1xf32>) -> tensor<?x?x?x5xf32>
  %y = tensor.cast %j : tensor<?x?x?x5xf32> to !y
  cfb.yield %y : !y
}
