// What is not known, or done by no storage alone, is an error where it is.
// RUN: %batch-opt %s --ragged-lower-storage --split-input-file --verify-diagnostics

ragged.dim @batch
ragged.dim @seq(@batch)
// expected-error@+1 {{not supported yet: `func.func` that takes a ragged tensor; let it take storage, lengths and offsets}}
func.func @f(%x: tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch)>>) {
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%b: index, %s: index) {
  // expected-error@+1 {{not supported yet: `tensor.empty` of a ragged tensor}}
  %x = tensor.empty(%b, %s) : tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch)>>
  return
}

// -----

ragged.dim @batch
ragged.dim @head
ragged.dim @seq(@batch)
func.func @f(%x: tensor<?xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  // expected-error@+1 {{not supported yet: a dim of unknown size before a ragged one}}
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x?xf32, #ragged.shape<@batch, @head, @seq(@batch)>>
  return
}

// -----

// The padding that is divided by may be zero.
ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%x: tensor<?xi32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?xi32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?xi32, #ragged.shape<@batch, @seq(@batch) pad 4>>
  // expected-error@+1 {{not supported yet: `arith.divsi` of a ragged tensor}}
  %q = arith.divsi %r, %r : tensor<?x?xi32, #ragged.shape<@batch, @seq(@batch) pad 4>>
  return
}

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
func.func @f(%x: tensor<?xi32>, %n: tensor<?xindex>, %o: tensor<?xindex>) {
  %r = ragged.from_storage %x lengths(%n) offsets(%o) : tensor<?xi32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?xi32, #ragged.shape<@batch, @seq(@batch)>>
  // expected-error@+1 {{not supported yet: `arith.mulsi_extended` of a ragged tensor}}
  %a, %b = arith.mulsi_extended %r, %r : tensor<?x?xi32, #ragged.shape<@batch, @seq(@batch)>>
  return
}

// -----

// The rows that offsets count are those of the table of lengths: both are padded, or neither.
ragged.dim @doc
ragged.dim @sent(@doc)
ragged.dim @word(@doc, @sent)
func.func @f(%x: tensor<?xf32>, %n: tensor<?xindex>, %w: tensor<?xindex>, %o: tensor<?xindex>) {
  %words = ragged.from_storage %w lengths(%n) offsets(%o) : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>
  // expected-error@+1 {{expected a table of lengths padded as the dims that it is over are}}
  %r = ragged.from_storage %x lengths(%n, %words) offsets(%o) : tensor<?xf32>, (tensor<?xindex>, tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>), tensor<?xindex> -> tensor<?x?x?xf32, #ragged.shape<@doc, @sent(@doc) pad 4, @word(@doc, @sent)>>
  return
}
