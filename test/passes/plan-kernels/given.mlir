// The result is as long as a length, its parts as numbers: that the length is as much as they need is given, once
// for each sum of lengths, and what is printed comes back as the same code.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels | %batch-opt --lower-kernels | sed 's/location[^,]*,//') <(%batch-opt %s --plan-kernels --lower-kernels | sed 's/location[^,]*,//')

!x = tensor<?x?x4xf32, #ragged.shape<@batch, @n(@batch), _>>
!h = tensor<?x?x2xf32, #ragged.shape<@batch, @n(@batch), _>>
!r = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @q(@batch)>>

// CHECK: #[[SET:.*]] = affine_set<(d0, d1) : (d1 - 4 >= 0)>
// CHECK-LABEL: ragged.kernel @parts
// CHECK: %[[R:.*]] = ragged.result of [@n, @q]
// CHECK: ragged.calls {{.*}}given #[[SET]] {
// CHECK-NEXT: ragged.nest over [@n, 2]
// CHECK: ragged.store %{{.*}}, %[[R]] (d0, d1) -> (d0, d1)
// CHECK: ragged.nest over [@n, 2]
// CHECK: ragged.store %{{.*}}, %[[R]] (d0, d1) -> (d0, d1 + 2)
cfb.kernel @parts attributes {unit = #cfb<unit calls>, lengths = [@n, @q], rows = [@n, @q]} {
^bb0(%calls: index, %n: tensor<?xindex>, %q: tensor<?xindex>, %x: !x):
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : !x
  %a = tensor.extract_slice %x[0, 0, 0] [%calls, %d, 2] [1, 1, 1] : !x to !h
  %b = tensor.extract_slice %x[0, 0, 2] [%calls, %d, 2] [1, 1, 1] : !x to !h
  %e = arith.negf %a : !h
  %f = tensor.cast %e : !h to tensor<?x?x2xf32>
  %g = tensor.cast %b : !h to tensor<?x?x2xf32>
  %c = tensor.concat dim(2) %f, %g : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x4xf32>
  %r = tensor.cast %c : tensor<?x?x4xf32> to !r
  cfb.yield %r : !r
}
