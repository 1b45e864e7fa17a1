// A loop over a list takes its index from it; a horizontal fusion is one loop over the iterations of
// its parts.
// RUN: %batch-opt %s --ragged-lower-loops | %FileCheck %s

ragged.dim @batch

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[SHORT:.*]]: tensor<?xi32>, %[[LONG:.*]]: tensor<?xi32>, %[[OUT:.*]]: memref<?xindex>)
func.func @f(%short: tensor<?xi32>, %long: tensor<?xi32>, %out: memref<?xindex>) {
  // CHECK-NOT: ragged.
  // CHECK: tensor.dim %[[SHORT]]
  // CHECK: %[[COUNT:.*]] = arith.maxsi
  // CHECK: tensor.dim %[[LONG]]
  // CHECK: scf.for %[[I:[^ ]*]] =
  // CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi slt, %[[I]], %[[COUNT]] : index
  // CHECK-NEXT: scf.if %[[FIRST]] {
  // CHECK-NEXT: %[[ENTRY:.*]] = tensor.extract %[[SHORT]][%[[I]]] : tensor<?xi32>
  // CHECK-NEXT: %[[ROW:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
  // CHECK-NEXT: memref.store %[[ROW]], %[[OUT]][%[[ROW]]] : memref<?xindex>
  // CHECK-NEXT: } else {
  // CHECK-NEXT: %[[J:.*]] = arith.subi %[[I]], %[[COUNT]] : index
  // CHECK-NEXT: tensor.extract %[[LONG]][%[[J]]] : tensor<?xi32>
  ragged.hfuse {
    ragged.forall %b in @batch rows %short : tensor<?xi32> {
      memref.store %b, %out[%b] : memref<?xindex>
    }
  }, {
    ragged.forall %b in @batch rows %long : tensor<?xi32> {
      memref.store %b, %out[%b] : memref<?xindex>
    }
  }
  return
}

// A part of several loops keeps their order: the parts follow one another.
// CHECK-LABEL: func.func @several
func.func @several(%rows: index, %out: memref<?xindex>) {
  // CHECK-COUNT-3: scf.for
  ragged.hfuse {
    ragged.forall %b in @batch to %rows : index {
      memref.store %b, %out[%b] : memref<?xindex>
    }
    ragged.forall %b in @batch to %rows : index {
      memref.store %rows, %out[%b] : memref<?xindex>
    }
  }, {
    ragged.forall %b in @batch to %rows : index {
      %c = arith.addi %b, %rows : index
      memref.store %b, %out[%c] : memref<?xindex>
    }
  }
  return
}
