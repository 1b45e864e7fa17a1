// A loop over rows runs over a list of them, by the lengths of the loop within; equal requests of two
// operators have one order, which no loop over layers computes again.
// RUN: %batch-opt %s --ragged-remap-loops | %FileCheck %s
// RUN: %batch-opt %s --ragged-remap-loops --cse --loop-invariant-code-motion | %FileCheck %s --check-prefix=ONCE

ragged.dim @batch
ragged.dim @seq(@batch)

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[ROWS:.*]]: index, %[[N:.*]]: tensor<?xi32>
func.func @f(%rows: index, %n: tensor<?xi32>, %layers: index, %out: memref<?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // ONCE: %[[ORDER:.*]] = ragged.prelude
  // ONCE-NOT: ragged.prelude
  // ONCE: scf.for
  // ONCE-NOT: ragged.prelude
  // ONCE: ragged.forall %{{.*}} in @batch rows %[[ORDER]]
  // ONCE: ragged.forall %{{.*}} in @batch rows %[[ORDER]]
  scf.for %l = %c0 to %layers step %c1 {
    // CHECK: %[[LIST:.*]] = ragged.prelude(%[[N]]) : (tensor<?xi32>) -> tensor<?xi32> {
    // CHECK: ragged.remap %{{.*}} longest_first : tensor<?xi32>
    // CHECK: ragged.forall %[[B:.*]] in @batch rows %[[LIST]] : tensor<?xi32> {
    // CHECK-NEXT: ragged.forall %{{.*}} in @seq(%[[B]]) to %[[N]] : tensor<?xi32> {
    ragged.forall %b in @batch to %rows : index attributes {remap = #ragged.order<longest_first>} {
      ragged.forall %s in @seq(%b) to %n : tensor<?xi32> {
        memref.store %s, %out[%b, %s] : memref<?x?xindex>
      }
    }
    ragged.forall %b in @batch to %rows : index attributes {remap = #ragged.order<longest_first>} {
      ragged.forall %s in @seq(%b) to %n : tensor<?xi32> {
        memref.store %b, %out[%b, %s] : memref<?x?xindex>
      }
    }
  }
  return
}
