// A dim depends only on declared dims, never on itself.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{ragged_dim_c1: @batch is not a declared dim}}
ragged.dim @seq(@batch)

// -----

// A symbol of another kind is no dim.
func.func private @batch()
// expected-error@+1 {{ragged_dim_c1: @batch is not a declared dim}}
ragged.dim @seq(@batch)

// -----

ragged.dim @batch
// expected-error@+1 {{ragged_dim_c2: @batch appears twice among the outer dims}}
ragged.dim @seq(@batch, @batch)

// -----

ragged.dim @doc
ragged.dim @sent(@doc)
// expected-error@+1 {{ragged_dim_c3: expected @doc before @sent, whose length depends on it}}
ragged.dim @word(@sent, @doc)

// -----

// expected-error@+1 {{ragged_dim_c4: expected `max` to be at least 1, but got 0}}
ragged.dim @batch max 0

// -----

// expected-error@+1 {{ragged_dim_c5: expected a name that is not empty}}
ragged.dim @""

// -----

// expected-error@+1 {{ragged_dim_c3: expected @a before @b, whose length depends on it}}
ragged.dim @a(@b)
ragged.dim @b(@a)
