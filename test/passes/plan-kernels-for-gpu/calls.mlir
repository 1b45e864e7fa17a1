// Per-instance kernels are planned for a GPU in a gpu.module: no vectors and no work items, and products in tiles, of
// more terms where both sides can be copied four elements at a time. Kernels of the CPU stay
// at level 2. What is printed comes back as the same code.
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels-for-gpu | %batch-opt --lower-kernels-to-gpu) <(%batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu)
// RUN: diff <(%batch-opt %s --plan-kernels-for-gpu) <(%batch-opt %s --plan-kernels-for-gpu --plan-kernels-for-gpu)

!a = tensor<?x?x16xf32, #ragged.shape<@batch, @m(@batch), _>>
!b = tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
!t = tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!r = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>

// CHECK: gpu.module @cohort_gpu {
// CHECK: ragged.kernel @rows {
// CHECK: ragged.nest over [4] by 4 {
// CHECK: ragged.kernel @copied attributes {lengths = [@m, @n], rows = [@m, @n], unit = #cfb<unit calls>} {
// CHECK: ragged.calls {
// CHECK-NEXT: ragged.matmul over [@m, @n] depth [16] blocks [64, 16] into %{{.*}} (d0, d1) -> (d0, d1) : memref<?x?x?xf32> left along_depth {
// CHECK: right along_depth {
// CHECK: ragged.kernel @computed
// CHECK: ragged.matmul over [@m, @n] depth [16] blocks [64, 8] into
// CHECK-SAME: left along_depth {
// CHECK-NEXT: ragged.load
// CHECK-NEXT: arith.negf
// CHECK: ragged.kernel @onto
// CHECK: ragged.nest over [@m, @n] {
// CHECK: ragged.matmul over [@m, @n] depth [16] blocks [64, 16] onto into
// CHECK: cfb.kernel @rows
// CHECK: cfb.kernel @copied
// CHECK: cfb.kernel @computed
// CHECK: cfb.kernel @onto
cfb.kernel @rows {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  %r = math.exp %x : tensor<?x4xf32>
  cfb.yield %r : tensor<?x4xf32>
}

cfb.kernel @copied attributes {lengths = [@m, @n], rows = [@m, @n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %lm: tensor<?xindex>, %ln: tensor<?xindex>, %a: !a, %b: !b):
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %dm = tensor.dim %a, %c1 : !a
  %dn = tensor.dim %b, %c1 : !b
  %et = tensor.empty(%calls, %dn) : !t
  %t = linalg.transpose ins(%b : !b) outs(%et : !t) permutation = [0, 2, 1]
  %e = tensor.empty(%calls, %dm, %dn) : !r
  %z = linalg.fill ins(%zero : f32) outs(%e : !r) -> !r
  %p = linalg.batch_matmul ins(%a, %t : !a, !t) outs(%z : !r) -> !r
  cfb.yield %p : !r
}

cfb.kernel @computed attributes {lengths = [@m, @n], rows = [@m, @n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %lm: tensor<?xindex>, %ln: tensor<?xindex>, %a: !a, %b: !b):
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %dm = tensor.dim %a, %c1 : !a
  %dn = tensor.dim %b, %c1 : !b
  %x = arith.negf %a : !a
  %et = tensor.empty(%calls, %dn) : !t
  %t = linalg.transpose ins(%b : !b) outs(%et : !t) permutation = [0, 2, 1]
  %e = tensor.empty(%calls, %dm, %dn) : !r
  %z = linalg.fill ins(%zero : f32) outs(%e : !r) -> !r
  %p = linalg.batch_matmul ins(%x, %t : !a, !t) outs(%z : !r) -> !r
  cfb.yield %p : !r
}

cfb.kernel @onto attributes {lengths = [@m, @n], rows = [@m, @n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %lm: tensor<?xindex>, %ln: tensor<?xindex>, %a: !a, %b: !b, %c: !r):
  %c1 = arith.constant 1 : index
  %dn = tensor.dim %b, %c1 : !b
  %et = tensor.empty(%calls, %dn) : !t
  %t = linalg.transpose ins(%b : !b) outs(%et : !t) permutation = [0, 2, 1]
  %p = linalg.batch_matmul ins(%a, %t : !a, !t) outs(%c : !r) -> !r
  cfb.yield %p : !r
}
