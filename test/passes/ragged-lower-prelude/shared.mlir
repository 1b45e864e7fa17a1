// Two operators over the same raggedness have one prelude, whatever pass has written each, and a loop
// over layers does not compute it again: offsets and maps are made once a batch.
// RUN: %batch-opt %s --ragged-fuse-loops --cse --loop-invariant-code-motion | %FileCheck %s
// RUN: %batch-opt %s --ragged-fuse-loops --cse --loop-invariant-code-motion --ragged-lower-prelude --ragged-lower-loops --canonicalize --cse | %FileCheck %s --check-prefix=LOOPS

ragged.dim @batch
ragged.dim @seq(@batch)

// CHECK-LABEL: func.func @f
// LOOPS-LABEL: func.func @f
func.func @f(%rows: index, %n: tensor<?xindex>, %layers: index, %out: memref<?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[MAPS:.*]]:2 = ragged.prelude
  // CHECK: tensor.dim %[[MAPS]]#0
  // CHECK-NOT: ragged.prelude
  // CHECK: scf.for %{{.*}} to %{{.*}} step
  // CHECK-NOT: ragged.prelude
  // CHECK: ragged.forall
  // CHECK: tensor.extract %[[MAPS]]#0
  // CHECK: ragged.forall
  // CHECK: tensor.extract %[[MAPS]]#0
  // Lowered: the sums of lengths and the maps' rows before the layers, and then none.
  // LOOPS: scf.for
  // LOOPS: tensor.insert
  // LOOPS: scf.for
  // LOOPS: scf.for
  // LOOPS: tensor.insert
  // LOOPS: scf.for
  // LOOPS-NOT: tensor.insert
  // LOOPS: return
  scf.for %l = %c0 to %layers step %c1 {
    ragged.forall %b in @batch to %rows : index attributes {fuse} {
      ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
        memref.store %s, %out[%b, %s] : memref<?x?xindex>
      }
    }
    ragged.forall %b in @batch to %rows : index attributes {fuse} {
      ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
        memref.store %b, %out[%b, %s] : memref<?x?xindex>
      }
    }
  }
  return
}
