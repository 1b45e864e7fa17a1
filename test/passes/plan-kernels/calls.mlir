// Kernels whose unit is the call: what is elementwise and what folds is one nest, whose loops are as long as the
// call's own lengths; a concatenation is a nest a part; a fold stands in the outermost region that has its
// indices; and what is printed comes back as the same code.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels | %batch-opt --lower-kernels | sed 's/location[^,]*,//') <(%batch-opt %s --plan-kernels --lower-kernels | sed 's/location[^,]*,//')

!x = tensor<?x?x28xf32, #ragged.shape<@batch, @n(@batch), _>>
!v = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
!l = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
!r = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
!p = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>

// CHECK-LABEL: ragged.kernel @sums attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
// CHECK-NEXT: ragged.operand length : memref<?xi32>
// CHECK-NEXT: %[[X:.*]] = ragged.operand expanded of [@n] : memref<?x?x28xf32>
// CHECK-NEXT: %[[R:.*]] = ragged.result of [@n] : memref<?x?xf32>
// CHECK-NEXT: ragged.calls {
// CHECK-NEXT: ragged.nest over [@n] {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT: %[[S:.*]] = ragged.reduce over [28] from %[[ZERO]] : f32 {
// CHECK: %[[V:.*]] = ragged.load %[[X]] (d0, d1) -> (d0, d1)
// CHECK-NEXT: arith.addf %{{.*}}, %[[V]] : f32
// CHECK: ragged.store %[[S]], %[[R]] (d0) -> (d0)
cfb.kernel @sums attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c1 : !x
  %e = tensor.empty(%calls, %d) : !v
  %z = linalg.fill ins(%zero : f32) outs(%e : !v) -> !v
  %s = linalg.reduce { arith.addf } ins(%x : !x) outs(%z : !v) dimensions = [2]
  cfb.yield %s : !v
}

// The sum needs no index of the nest, so lanes run along the rows.
// CHECK-LABEL: ragged.kernel @centred
// CHECK: ragged.calls {
// CHECK-NEXT: ragged.nest over [@n] lanes 0 {
// CHECK: ragged.reduce over [@n] from
// CHECK: ragged.load %{{.*}} (d0, d1) -> (d1)
cfb.kernel @centred attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !v):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c1 : !v
  %e = tensor.empty(%calls) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : !v) outs(%z : tensor<?xf32>) dimensions = [1]
  %f = tensor.empty(%calls, %d) : !v
  %b = linalg.broadcast ins(%s : tensor<?xf32>) outs(%f : !v) dimensions = [1]
  %r = arith.subf %x, %b : !v
  cfb.yield %r : !v
}

// What is elementwise before a product is computed while a side is packed, what is behind it where the
// sums lie.
// CHECK-LABEL: ragged.kernel @product
// CHECK: %[[L:.*]] = ragged.operand expanded of [@n, @m]
// CHECK: %[[M:.*]] = ragged.operand expanded of [@m, @n]
// CHECK: %[[R:.*]] = ragged.result of [@n, @n]
// CHECK: ragged.calls flops {{\[}}[@n, @n, @m, 2]] {
// CHECK-NEXT: ragged.matmul over [@n, @n] depth [@m] rows 48 blocks [1024, 1024] into %[[R]] (d0, d1) -> (d0, d1) lanes 1
// CHECK-SAME: left along_depth {
// CHECK-NEXT: %[[A:.*]] = ragged.load %[[L]] (d0, d1, d2) -> (d0, d2)
// CHECK-NEXT: arith.negf %[[A]]
// CHECK: right {
// CHECK-NEXT: ragged.load %[[M]] (d0, d1, d2) -> (d2, d1)
// CHECK: finish {
// CHECK-NEXT: %[[S:.*]] = ragged.load %[[R]] (d0, d1) -> (d0, d1)
// CHECK: arith.maximumf %[[S]]
cfb.kernel @product attributes {unit = #cfb<unit calls>, lengths = [@n, @m], rows = [@n, @n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %m: tensor<?xindex>, %x: !l, %y: !r):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c1 : !l
  %e = tensor.empty(%calls, %d, %d) : !p
  %z = linalg.fill ins(%zero : f32) outs(%e : !p) -> !p
  %a = arith.negf %x : !l
  %p = linalg.batch_matmul ins(%a, %y : !l, !r) outs(%z : !p) -> !p
  %q = arith.maximumf %p, %z : !p
  cfb.yield %q : !p
}
