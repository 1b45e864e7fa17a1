// A loop runs over a declared dim, with what its length is read from, and its requests make sense.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c1: @batch is not a declared dim}}
  ragged.for %b in @batch to %r : index {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_for_c2: expected 1 indices, one for each outer dim, but got 0}}
  ragged.for %s in @seq to %n : tensor<?xindex> {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%b: index, %n: index) {
  // expected-error@+1 {{ragged_for_c3: expected a table of one dim for each outer dim, but got 'index'}}
  ragged.for %s in @seq(%b) to %n : index {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_for_c3: expected an index, but got 'tensor<?xindex>'}}
  ragged.for %b in @batch to %n : tensor<?xindex> {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%b: index) {
  // expected-error@+1 {{ragged_for_c4: expected a length after `to`}}
  ragged.for %s in @seq(%b) {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
ragged.dim @twice(@batch) lengths (b)[n] -> (2 * n) of [@seq]
func.func @f(%b: index) {
  // expected-error@+1 {{ragged_for_c4: expected a length after `to`}}
  ragged.for %s in @twice(%b) {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c5: expected `to` with the type of `from`, 'index'}}
  ragged.for %b in @batch from %r : index {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%b: index, %l: tensor<?xindex>) {
  // expected-error@+1 {{ragged_for_c6: expected `rows` only for a dim of one length, and no bounds}}
  ragged.for %s in @seq(%b) rows %l : tensor<?xindex> {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c7: expected `pad` to be at least 1 and below 2^31, but got 0}}
  ragged.for %b in @batch to %r : index pad 0 {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index, %x: f32) {
  // The interface of loops sees this first.
  // expected-error@+1 {{0-th region iter_arg and 0-th yielded value have different type: 'f32' != 'index'}}
  %a = ragged.for %b in @batch to %r : index iter_args(%c = %x) -> (f32) {
    ragged.yield %b : index
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index, %x: f32) {
  // expected-error@+1 {{0-th region iter_arg and 0-th loop result have different type: 'f32' != 'f64'}}
  %a = "ragged.for"(%r, %x) <{dim = @batch, operandSegmentSizes = array<i32: 0, 0, 1, 0, 1>}> ({
  ^bb0(%b: index, %c: f32):
    ragged.yield %c : f32
  }) : (index, f32) -> f64
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c8: expected region arguments of types ('index'), but got ('i32')}}
  "ragged.for"(%r) <{dim = @batch, operandSegmentSizes = array<i32: 0, 0, 1, 0, 0>}> ({
  ^bb0(%b: i32):
    ragged.yield
  }) : (index) -> ()
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c8: expected the region to end in `ragged.yield`}}
  ragged.for %b in @batch to %r : index {
    llvm.unreachable
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c9: expected `split` to be at least 2 and below 2^31, but got 1}}
  ragged.for %b in @batch to %r : index attributes {split = 1} {
  }
  return
}

// -----

ragged.dim @batch
func.func @f(%r: index) {
  // expected-error@+1 {{ragged_for_c10: expected the body to be one loop that runs under this one}}
  ragged.for %b in @batch to %r : index attributes {fuse} {
  }
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%r: index, %z: index, %n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_for_c10: expected the body to be one loop that runs under this one}}
  ragged.for %b in @batch to %r : index attributes {fuse} {
    ragged.for %s in @seq(%z) to %n : tensor<?xindex> {
    }
  }
  return
}
