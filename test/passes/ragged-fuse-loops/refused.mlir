// Loops that would not do the same as one loop stay as they are, with a remark.
// RUN: %batch-opt %s --ragged-fuse-loops --split-input-file --verify-diagnostics

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%list: tensor<?xindex>, %n: tensor<?xindex>) {
  // expected-remark@+1 {{the loops were not fused: the outer loop is not over all rows, each once}}
  ragged.forall %b in @batch rows %list : tensor<?xindex> attributes {fuse} {
    ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
    }
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%rows: index, %m: tensor<?xindex>, %n: tensor<?xindex>) {
  // expected-remark@+1 {{the loops were not fused: the inner loop is not over whole rows with a table of lengths}}
  ragged.forall %b in @batch to %rows : index attributes {fuse} {
    ragged.forall %s in @seq(%b) from %m to %n : tensor<?xindex> {
    }
  }
  return
}

// -----

// Every row starts from zero, and only the last row's sum is kept.
ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%rows: index, %n: tensor<?xindex>, %zero: index) -> index {
  // expected-remark@+1 {{the loops were not fused: the inner loop does not take and give just what the outer carries}}
  %r = ragged.for %b in @batch to %rows : index iter_args(%a = %zero) -> (index) attributes {fuse} {
    %t = ragged.for %s in @seq(%b) to %n : tensor<?xindex> iter_args(%c = %zero) -> (index) {
      %u = arith.addi %c, %s : index
      ragged.yield %u : index
    }
    ragged.yield %t : index
  }
  return %r : index
}
