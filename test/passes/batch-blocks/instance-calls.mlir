// Where the unit is the call, tensors keep their dims under the batch's, and their types say which
// differ by call; sizes are bounds, read off an argument. A row of a tensor is a handle.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0 attributes {lengths = [@dim.0, @dim.1], rows = [@dim.0], sym_visibility = "private", unit = #cfb<unit calls>}
// CHECK-NEXT: ^bb0(%[[CALLS:.*]]: index, %{{.*}}: tensor<?xindex>, %{{.*}}: tensor<?xindex>,
// CHECK-SAME: %[[A:.*]]: tensor<?x?x?xf32, #ragged.shape<@dim.batch, @dim.0(@dim.batch), @dim.1(@dim.batch)>>,
// CHECK-SAME: %[[B:.*]]: tensor<?x?x8xf32, #ragged.shape<@dim.batch, @dim.1(@dim.batch), _>>)
// CHECK: %[[N:.*]] = tensor.dim %[[A]]
// CHECK: tensor.empty(%[[CALLS]], %[[N]]) : tensor<?x?x8xf32, #ragged.shape<@dim.batch, @dim.0(@dim.batch), _>>
// CHECK: linalg.batch_matmul ins(%[[A]], %[[B]]
// CHECK-LABEL: func.func @main
// CHECK: cfb.record @f_0
// CHECK: cfb.row %{{.*}}[%{{.*}}] : !cfb.lazy<tensor<?x8xf32>> -> !cfb.lazy<tensor<8xf32>>
func.func @main(%n: index, %m: index, %a: tensor<?x?xf32>, %b: tensor<?x8xf32>, %i: i32) -> tensor<8xf32> {
  %r = cfb.block "f"(%n, %m, %a, %b) : (index, index, tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
      attributes {leading = [[@dim.0, @dim.1], [@dim.1]], lengths = [@dim.0, @dim.1], rows = [@dim.0], unit = #cfb<unit calls>} {
  ^bb0(%l: index, %k: index, %x: tensor<?x?xf32>, %y: tensor<?x8xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%l) : tensor<?x8xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %p = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<?x8xf32>) outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
    cfb.yield %p : tensor<?x8xf32>
  }
  %row = cfb.lookup %r[%i] : tensor<?x8xf32> -> tensor<8xf32>
  return %row : tensor<8xf32>
}
