// Offsets are of a ragged dim, from lengths over its outer dims, one entry more than there are rows.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_offsets_c1: @seq is not a declared dim}}
  %o = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xindex>
  return
}

// -----

ragged.dim @batch
func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_offsets_c1: @batch is not ragged}}
  %o = ragged.offsets @batch(%n) : tensor<?xindex> -> tensor<?xindex>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%n: tensor<?x?xindex>) {
  // expected-error@+1 {{ragged_offsets_c2: expected lengths of 1 dims, one for each outer dim of @seq, but got 'tensor<?x?xindex>'}}
  %o = ragged.offsets @seq(%n) : tensor<?x?xindex> -> tensor<?xindex>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%n: tensor<28xindex>) {
  // expected-error@+1 {{ragged_offsets_c3: expected a result of type 'tensor<29xindex>', but got 'tensor<28xindex>'}}
  %o = ragged.offsets @seq(%n) : tensor<28xindex> -> tensor<28xindex>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_offsets_c3: expected a result of type 'tensor<?xindex>', but got 'tensor<?xi64>'}}
  %o = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xi64>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_offsets_c4: expected `pad` to be at least 1 and below 2^31, but got 0}}
  %o = ragged.offsets @seq(%n) pad 0 : tensor<?xindex> -> tensor<?xindex>
  return
}

// -----

ragged.dim @doc
ragged.dim @sent(@doc)
ragged.dim @word(@doc, @sent)
func.func @f(%n: tensor<?x?xindex>) {
  // expected-error@+1 {{ragged_offsets_c5: expected the lengths' type to say that dim 1 is @sent}}
  %o = ragged.offsets @word(%n) : tensor<?x?xindex> -> tensor<?xindex>
  return
}
