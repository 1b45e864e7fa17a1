// A loop whose order means something, or whose rows have no known lengths, stays.
// RUN: %batch-opt %s --ragged-remap-loops --split-input-file --verify-diagnostics

ragged.dim @batch
func.func @f(%rows: index) {
  // expected-remark@+1 {{the loop was not remapped: it runs in order}}
  ragged.for %b in @batch to %rows : index attributes {remap = #ragged.order<longest_first>} {
  }
  // expected-remark@+1 {{the loop was not remapped: no loop within it has a table of its rows' lengths}}
  ragged.forall %b in @batch to %rows : index attributes {remap = #ragged.order<longest_first>} {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%rows: index, %from: index, %n: tensor<?xindex>) {
  // expected-remark@+1 {{the loop was not remapped: it is not over all rows, each once}}
  ragged.forall %b in @batch from %from to %rows : index attributes {remap = #ragged.order<shortest_first>} {
    ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
    }
  }
  return
}
