// A shape's entries fit the tensor and one another.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{ragged_shape_c1: expected 3 entries, one for each dim, but got 2}}
func.func private @f(tensor<?x?x3xf32, #ragged.shape<@batch, @seq(@batch)>>)

// -----

// expected-error@+1 {{ragged_shape_c2: @seq depends on @batch, which does not come before it}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@seq(@batch), @batch>>)

// -----

// A dim is not its own outer dim.
// expected-error@+1 {{ragged_shape_c2: @seq depends on @seq, which does not come before it}}
func.func private @f(tensor<?xf32, #ragged.shape<@seq(@seq)>>)

// -----

// expected-error@+1 {{ragged_shape_c3: expected the ragged dim @seq to be dynamic, but it is 28}}
func.func private @f(tensor<?x28xf32, #ragged.shape<@batch, @seq(@batch)>>)

// -----

// expected-error@+1 {{ragged_shape_c4: expected `pad` to be at least 1 and below 2^31, but got 0}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch) pad 0>>)

// -----

// expected-error@+1 {{ragged_shape_c4: expected `bulk` to be at least 1 and below 2^31, but got -64}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch) bulk -64>>)

// -----

// expected-error@+1 {{ragged_shape_c4: expected `max` to be at least 1, but got 0}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@batch max 0, @seq(@batch)>>)

// -----

// expected-error@+1 {{ragged_shape_c5: expected `bulk` on a ragged dim only}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@batch bulk 64, @seq(@batch)>>)

// -----

// expected-error@+1 {{ragged_shape_c6: @doc appears twice among the outer dims of @word}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@doc, @word(@doc, @doc)>>)

// -----

// expected-error@+1 {{ragged_shape_c7: expected the same outer dims and the same `max` wherever @seq appears}}
func.func private @f(tensor<?x?x?xf32, #ragged.shape<@batch, @seq(@batch), @seq>>)

// -----

// expected-error@+1 {{ragged_shape_c7: expected the same outer dims and the same `max` wherever @seq appears}}
func.func private @f(tensor<?x?x?xf32, #ragged.shape<@batch, @seq(@batch) max 28, @seq(@batch) max 61>>)

// -----

// expected-error@+1 {{ragged_shape_c8: expected no outer dims of a dim without a name}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@batch, _(@batch)>>)

// -----

// expected-error@+1 {{ragged_shape_c9: expected at most 64, but got 65}}
func.func private @f(tensor<65x?xf32, #ragged.shape<@batch max 64, @seq(@batch)>>)

// -----

// Extents stay integers, whatever the padding.
// expected-error@+1 {{ragged_shape_c4: expected `pad` to be at least 1 and below 2^31, but got 2147483648}}
func.func private @f(tensor<?x?xf32, #ragged.shape<@batch, @seq(@batch) pad 2147483648>>)

// -----

// expected-error@+1 {{ragged_shape_c10: expected a size that can be padded, but got 9223372036854775806}}
func.func private @f(tensor<?x?x9223372036854775806xf32, #ragged.shape<@batch, @seq(@batch), _ pad 16>>)

// -----

// expected-error@+1 {{ragged_shape_c8: expected `_` for a dim without a name}}
func.func private @f(tensor<?xf32, #ragged.shape<@"">>)
