// What cannot be lowered is an error at the loop; a request that nobody granted is a remark.
// RUN: %batch-opt %s --ragged-lower-loops --split-input-file --verify-diagnostics

module {
  module {
    ragged.dim @row
    ragged.dim @until(@row) lengths (i) -> (i + 1)
    func.func @f(%i: index) {
      // expected-error@+1 {{the rule of a dim in another symbol table is not supported yet}}
      ragged.forall %j in @until(%i) {
      }
      return
    }
  }
}

// -----

ragged.dim @batch
func.func @f(%rows: index) {
  // expected-remark@+1 {{the request `split` was granted by no pass}}
  ragged.forall %b in @batch to %rows : index attributes {split = 4} {
  }
  return
}
