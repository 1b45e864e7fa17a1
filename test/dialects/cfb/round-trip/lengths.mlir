// Blocks, kernels and the control program on tensors whose lengths differ by instance.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK: cfb.kernel @rows attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>, #cfb<takes row>], unit = #cfb<unit rows>}
cfb.kernel @rows attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>, #cfb<takes row>], unit = #cfb<unit rows>} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>, %g: tensor<?x8xf32>):
  %y = arith.mulf %x, %g : tensor<?x8xf32>
  cfb.yield %y : tensor<?x8xf32>
}

// CHECK: cfb.kernel @calls attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>}
cfb.kernel @calls attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: tensor<?x?x8xf32, #ragged.shape<@batch, @n(@batch), _>>):
  cfb.yield %x : tensor<?x?x8xf32, #ragged.shape<@batch, @n(@batch), _>>
}

// CHECK-LABEL: func.func @control
func.func @control(%x: !cfb.lazy<tensor<?x8xf32>>, %g: !cfb.lazy<tensor<8xf32>>, %i: i32) {
  // CHECK: %[[N:.*]] = cfb.dim %{{.*}}, 0 : !cfb.lazy<tensor<?x8xf32>>
  %n = cfb.dim %x, 0 : !cfb.lazy<tensor<?x8xf32>>
  // CHECK: %[[K:.*]] = cfb.within %{{.*}} of %[[N]]
  %k = cfb.within %i of %n
  // CHECK: cfb.quotient %[[N]] by %[[N]]
  %q = cfb.quotient %n by %n
  // CHECK: cfb.row %{{.*}}[%[[K]]] : !cfb.lazy<tensor<?x8xf32>> -> !cfb.lazy<tensor<8xf32>>
  %r = cfb.row %x[%k] : !cfb.lazy<tensor<?x8xf32>> -> !cfb.lazy<tensor<8xf32>>
  // CHECK: cfb.record @rows(%[[N]], {{.*}}) : (index, !cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<8xf32>>)
  %y = cfb.record @rows(%n, %x, %g) : (index, !cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<?x8xf32>>
  // CHECK: cfb.record @calls(%[[N]], {{.*}}) : (index, !cfb.lazy<tensor<?x8xf32>>)
  %z = cfb.record @calls(%n, %y) : (index, !cfb.lazy<tensor<?x8xf32>>) -> !cfb.lazy<tensor<?x8xf32>>
  return
}

// CHECK-LABEL: func.func @block
func.func @block(%n: index, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: cfb.block "f"
  // CHECK-SAME: attributes {leading = {{\[\[}}@dim.0]], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit rows>}
  %y = cfb.block "f"(%n, %x) : (index, tensor<?x8xf32>) -> tensor<?x8xf32>
      attributes {leading = [[@dim.0]], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit rows>} {
  ^bb0(%l: index, %a: tensor<?x8xf32>):
    cfb.yield %a : tensor<?x8xf32>
  }
  return %y : tensor<?x8xf32>
}
