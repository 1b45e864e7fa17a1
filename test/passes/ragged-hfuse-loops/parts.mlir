// The aligned part and the tail of a split loop, and any loops of one name, are one launch: what is
// between them is computed before it, and lowered it is one loop over the iterations of all parts.
// RUN: %batch-opt %s --ragged-split-loops --ragged-hfuse-loops | %FileCheck %s
// RUN: %batch-opt %s --ragged-split-loops --ragged-hfuse-loops --ragged-lower-loops | %FileCheck %s --check-prefix=LOOP

ragged.dim @batch
ragged.dim @seq(@batch)

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[B:.*]]: index, %[[N:.*]]: tensor<?xindex>, %[[LIST:.*]]: tensor<?xindex>, %[[OUT:.*]]: memref<?xindex>)
// LOOP-LABEL: func.func @f
// LOOP-SAME: (%[[B:.*]]: index, %[[N:.*]]: tensor<?xindex>, %[[LIST:.*]]: tensor<?xindex>, %[[OUT:.*]]: memref<?xindex>)
func.func @f(%b: index, %n: tensor<?xindex>, %list: tensor<?xindex>, %out: memref<?xindex>) {
  // CHECK: %[[MAIN:.*]], %{{.*}} = ragged.split %[[N]] by 32
  // CHECK: %[[C:.*]] = arith.constant 7 : index
  // CHECK-NEXT: ragged.hfuse {
  // CHECK-NEXT: ragged.forall %{{.*}} in @seq(%[[B]]) to %[[MAIN]] : tensor<?xindex> {
  // CHECK: }, {
  // CHECK-NEXT: ragged.forall %{{.*}} in @seq(%[[B]]) from %[[MAIN]] to %[[N]] : tensor<?xindex> {
  // CHECK: }, {
  // CHECK-NEXT: ragged.forall %{{.*}} in @batch rows %[[LIST]] : tensor<?xindex> {
  // LOOP-COUNT-1: scf.for
  // LOOP: %[[FIRST:.*]] = arith.cmpi slt, %[[I:.*]], %{{.*}} : index
  // LOOP: scf.if %[[FIRST]] {
  // LOOP: memref.store
  // LOOP: } else {
  // LOOP: arith.subi %[[I]]
  // LOOP: scf.if
  // LOOP: memref.store
  // LOOP: } else {
  // LOOP: %[[ROW:.*]] = tensor.extract %[[LIST]]
  // LOOP: memref.store %{{.*}}, %[[OUT]][%[[ROW]]]
  // LOOP-NOT: scf.for
  ragged.forall %s in @seq(%b) to %n : tensor<?xindex> attributes {split = 32, hfuse = "all"} {
    memref.store %s, %out[%s] : memref<?xindex>
  }
  %c = arith.constant 7 : index
  ragged.forall %r in @batch rows %list : tensor<?xindex> attributes {hfuse = "all"} {
    memref.store %c, %out[%r] : memref<?xindex>
  }
  return
}
