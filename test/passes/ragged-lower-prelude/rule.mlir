// A rule becomes arithmetic on each row's indices and lengths; what it makes negative is 0.
// RUN: %batch-opt %s --ragged-lower-prelude | %FileCheck %s

ragged.dim @batch
ragged.dim @seq(@batch)
ragged.dim @pairs(@batch) lengths (b)[n, m] -> (n * m) of [@seq, @seq]

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[N:.*]]: tensor<?xindex>)
func.func @f(%n: tensor<?xindex>) -> tensor<?xindex> {
  // CHECK: scf.for %[[ROW:.*]] = %{{.*}} iter_args(%[[TABLE:.*]] = %{{.*}}) -> (tensor<?xindex>) {
  // CHECK: %[[LEFT:.*]] = tensor.extract %[[N]][%[[ROW]]] : tensor<?xindex>
  // CHECK: %[[RIGHT:.*]] = tensor.extract %[[N]][%[[ROW]]] : tensor<?xindex>
  // CHECK: %[[PRODUCT:.*]] = arith.muli %[[LEFT]], %[[RIGHT]] : index
  // CHECK: %[[LENGTH:.*]] = arith.maxsi %[[PRODUCT]], %{{.*}} : index
  // CHECK: tensor.insert %[[LENGTH]] into %[[TABLE]][%[[ROW]]]
  %p = ragged.lengths @pairs of(%n, %n) : (tensor<?xindex>, tensor<?xindex>) -> tensor<?xindex>
  return %p : tensor<?xindex>
}
