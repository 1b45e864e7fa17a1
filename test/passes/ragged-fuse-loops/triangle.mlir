// The loops over a triangle are one over its elements; the lengths come from the rule, in the prelude.
// RUN: %batch-opt %s --ragged-fuse-loops | %FileCheck %s

// CHECK: ragged.dim @row_until {ragged.fused = "row, until, pad 1"}
ragged.dim @row
ragged.dim @until(@row) lengths (i) -> (i + 1)

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[ROWS:.*]]: index, %[[OUT:.*]]: memref<?x?xindex>)
func.func @f(%rows: index, %out: memref<?x?xindex>) {
  // CHECK: %[[MAPS:.*]]:2 = ragged.prelude(%[[ROWS]]) : (index) -> (tensor<?xindex>, tensor<?xindex>) {
  // CHECK: %[[NUMBERS:.*]] = scf.for
  // CHECK: %[[LENGTHS:.*]] = ragged.lengths @until at(%[[NUMBERS]]) : (tensor<?xindex>) -> tensor<?xindex>
  // CHECK: %[[OFFSETS:.*]] = ragged.offsets @until(%[[LENGTHS]]) : tensor<?xindex> -> tensor<?xindex>
  // CHECK: ragged.fuse @until(%[[OFFSETS]])
  // CHECK: ragged.forall %[[F:.*]] in @row_until to
  // CHECK: tensor.extract %[[MAPS]]#0[%[[F]]]
  // CHECK: tensor.extract %[[MAPS]]#1[%[[F]]]
  ragged.forall %i in @row to %rows : index attributes {fuse} {
    ragged.forall %j in @until(%i) {
      memref.store %j, %out[%i, %j] : memref<?x?xindex>
    }
  }
  return
}
