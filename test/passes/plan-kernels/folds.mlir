// A sum of products folds in lanes along the result's last dim, two vectors at once; a sum along the row's last dim
// in lanes that are then folded together; a list's rows one after another, in vectors along a row.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s

// CHECK-LABEL: ragged.kernel @both row_products [1, 384] {
// CHECK: %[[X:.*]] = ragged.operand row : memref<?x6xf32>
// CHECK-NEXT: %[[M:.*]] = ragged.operand row : memref<?x6x32xf32>
// CHECK-NEXT: %[[P:.*]] = ragged.result : memref<?x32xf32>
// CHECK-NEXT: %[[S:.*]] = ragged.result : memref<?x6xf32>
// CHECK-NEXT: ragged.blocks of 96 tile 1 {
// CHECK-NEXT: ragged.fold over [32, 6] folding [1] into %[[P]] (d0) -> (d0) lanes 0 vectors 2
// CHECK: ragged.load %[[X]] (d0, d1) -> (d1)
// CHECK-NEXT: ragged.load %[[M]] (d0, d1) -> (d0 + d1 * 32)
// CHECK: ragged.fold over [6, 32] folding [1] into %[[S]] (d0) -> (d0) lanes 1
// CHECK: ragged.load %[[M]] (d0, d1) -> (d0 * 32 + d1)
cfb.kernel @both {
^bb0(%rows: index, %x: tensor<?x6xf32>, %m: tensor<?x6x32xf32>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x32xf32>
  %e0 = tensor.empty(%rows) : tensor<?x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x6xf32>) -> tensor<?x6xf32>
  %p = linalg.batch_vecmat ins(%x, %m : tensor<?x6xf32>, tensor<?x6x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.reduce { arith.addf } ins(%m : tensor<?x6x32xf32>) outs(%z0 : tensor<?x6xf32>) dimensions = [2]
  cfb.yield %p, %s : tensor<?x32xf32>, tensor<?x6xf32>
}

// CHECK-LABEL: ragged.kernel @k {
// CHECK-NEXT: %[[L:.*]] = ragged.operand list : memref<?x32xf32>
// CHECK-NEXT: %[[R:.*]] = ragged.result : memref<?x32xf32>
// CHECK-NEXT: ragged.blocks of 96 tile 1 {
// CHECK-NEXT: ragged.fold_list %[[L]] over [32] into %[[R]] (d0) -> (d0) vectors 2
// CHECK: ^bb0(%[[SUM:.*]]: f32, %[[NEXT:.*]]: f32):
// CHECK-NEXT: arith.addf %[[SUM]], %[[NEXT]] : f32
cfb.kernel @k {
^bb0(%rows: index, %list: !cfb.rows<tensor<32xf32>>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = cfb.reduce_rows %list init(%z) : (!cfb.rows<tensor<32xf32>>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  ^bb0(%acc: f32, %x: f32):
    %n = arith.addf %acc, %x : f32
    cfb.yield %n : f32
  }
  cfb.yield %s : tensor<?x32xf32>
}
