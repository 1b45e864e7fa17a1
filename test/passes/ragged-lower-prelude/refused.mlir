// What has the rows of a table needs to know where they lie.
// RUN: %batch-opt %s --ragged-lower-prelude --verify-diagnostics

ragged.dim @doc
ragged.dim @sent(@doc)
func.func @f(%w: tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>) -> tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>> {
  // expected-error@+1 {{not supported yet: a table over ragged dims whose storage is not given by `ragged.from_storage`}}
  %main, %tail = ragged.split %w by 4 : tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>
  return %main : tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>
}
