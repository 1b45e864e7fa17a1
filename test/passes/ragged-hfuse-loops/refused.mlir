// Loops that cannot be one launch stay where they are, with a remark.
// RUN: %batch-opt %s --ragged-hfuse-loops --split-input-file --verify-diagnostics

ragged.dim @batch
func.func @f(%rows: index) {
  // expected-remark@+1 {{the loops `alone` do not share a launch: there is one of the name in the block}}
  ragged.forall %b in @batch to %rows : index attributes {hfuse = "alone"} {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%rows: index) {
  // expected-remark@+1 {{the loops `two` do not share a launch: one of them runs in order}}
  ragged.forall %b in @batch to %rows : index attributes {hfuse = "two"} {
  }
  ragged.for %b in @batch to %rows : index attributes {hfuse = "two"} {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%rows: index, %out: memref<?xindex>) {
  // expected-remark@+1 {{the loops `two` do not share a launch: what is between them may have effects}}
  ragged.forall %b in @batch to %rows : index attributes {hfuse = "two"} {
  }
  memref.store %rows, %out[%rows] : memref<?xindex>
  ragged.forall %b in @batch to %rows : index attributes {hfuse = "two"} {
  }
  return
}
