// Storage has one dim for all up to the last ragged one.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

ragged.dim @batch
func.func @f(%x: tensor<?x28xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c1: @seq is not a declared dim}}
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?x28xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch), _>>
  return
}

// -----

ragged.dim @batch
// expected-note@+1 {{declared here}}
ragged.dim @seq(@batch) max 512
func.func @f(%x: tensor<?x28xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c1: expected @seq with the outer dims and the `max` of its declaration}}
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?x28xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch) max 513, _>>
  return
}

// -----

func.func @f(%x: tensor<?x28xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c2: expected a ragged tensor, but got 'tensor<?x?x28xf32>'}}
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?x28xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x28xf32>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%x: tensor<?x?x28xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c3: expected storage of type 'tensor<?x28xf32>', but got 'tensor<?x?x28xf32>'}}
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?x?x28xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch), _>>
  return
}

// -----

ragged.dim @doc
ragged.dim @sent(@doc)
ragged.dim @word(@doc, @sent)
func.func @f(%x: tensor<?xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c4: expected 2 tables of lengths, one for each ragged dim, but got 1}}
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x?xf32, #ragged.shape<@doc, @sent(@doc), @word(@doc, @sent)>>
  return
}

// -----

ragged.dim @doc
ragged.dim @sent(@doc)
ragged.dim @word(@doc, @sent)
func.func @f(%x: tensor<?xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c4: expected the lengths of @word to have one dim for each outer dim, but got 'tensor<?xindex>'}}
  %r = ragged.from_storage %x lengths(%n, %n) offsets(%o) : tensor<?xf32>, (tensor<?xindex>, tensor<?xindex>), tensor<?xindex> -> tensor<?x?x?xf32, #ragged.shape<@doc, @sent(@doc), @word(@doc, @sent)>>
  return
}

// -----

func.func @f(%x: tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch)>>) {
  // expected-error@+1 {{ragged_to_storage_c1: @batch is not a declared dim}}
  %r = ragged.to_storage %x : tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch)>> -> tensor<?xf32>
  return
}

// -----

ragged.dim @batch
func.func @f(%x: tensor<?x3xf32, #ragged.shape<@batch, _>>) {
  // expected-error@+1 {{ragged_to_storage_c2: expected a ragged tensor, but got 'tensor<?x3xf32, #ragged.shape<@batch, _>>'}}
  %r = ragged.to_storage %x : tensor<?x3xf32, #ragged.shape<@batch, _>> -> tensor<?x3xf32>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%x: tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch), _>>) {
  // expected-error@+1 {{ragged_to_storage_c3: expected storage of type 'tensor<?x28xf32>', but got 'tensor<?x28xf64>'}}
  %r = ragged.to_storage %x : tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch), _>> -> tensor<?x28xf64>
  return
}

// -----

// The last dim is padded in storage, too.
ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%x: tensor<?x?x13xf32, #ragged.shape<@batch, @seq(@batch), _ pad 16>>) {
  // expected-error@+1 {{ragged_to_storage_c3: expected storage of type 'tensor<?x16xf32>', but got 'tensor<?x13xf32>'}}
  %r = ragged.to_storage %x : tensor<?x?x13xf32, #ragged.shape<@batch, @seq(@batch), _ pad 16>> -> tensor<?x13xf32>
  return
}

// -----

// A table over a ragged dim would otherwise be read as a dense one.
ragged.dim @doc
ragged.dim @sent(@doc)
ragged.dim @word(@doc, @sent)
func.func @f(%x: tensor<?xf32>, %n: tensor<?xindex>, %w: tensor<?x?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{ragged_from_storage_c4: expected the type of the lengths of @word to say that dim 1 is @sent, but got 'tensor<?x?xindex>'}}
  %r = ragged.from_storage %x lengths(%n, %w) offsets(%o) : tensor<?xf32>, (tensor<?xindex>, tensor<?x?xindex>), tensor<?xindex> -> tensor<?x?x?xf32, #ragged.shape<@doc, @sent(@doc), @word(@doc, @sent)>>
  return
}
