// A dim depends only on declared dims, never on itself, and its rule takes what it is given.
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

ragged.dim @row
// expected-error@+1 {{ragged_dim_c4: expected a rule of 1 indices and one length, but got affine_map<(d0, d1) -> (d0 + d1)>}}
ragged.dim @until(@row) lengths (i, j) -> (i + j)

// -----

ragged.dim @row
// expected-error@+1 {{ragged_dim_c4: expected a rule of 1 indices and one length}}
ragged.dim @until(@row) lengths (i) -> (i, i + 1)

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
// expected-error@+1 {{ragged_dim_c5: expected 2 dims after `of`, one for each symbol of the rule, but got 1}}
ragged.dim @pairs(@batch) lengths (b)[n, m] -> (n * m) of [@seq]

// -----

ragged.dim @batch
// expected-error@+1 {{ragged_dim_c6: @seq is not a declared dim}}
ragged.dim @twice(@batch) lengths (b)[n] -> (2 * n) of [@seq]

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
// expected-error@+1 {{ragged_dim_c6: expected @batch among the outer dims, because the length of @seq depends on it}}
ragged.dim @twice lengths ()[n] -> (2 * n) of [@seq]

// -----

// expected-error@+1 {{ragged_dim_c7: the dim depends on itself}}
ragged.dim @a(@b) lengths (i) -> (i + 1)
ragged.dim @b(@a) lengths (i) -> (i + 1)

// -----

// expected-error@+1 {{ragged_dim_c7: the dim depends on itself}}
ragged.dim @n lengths ()[n] -> (n + 1) of [@n]

// -----

// expected-error@+1 {{ragged_dim_c8: expected `max` to be at least 1, but got 0}}
ragged.dim @batch max 0

// -----

ragged.dim @batch
ragged.dim @seq(@batch)
// expected-error@+1 {{ragged_dim_c9: expected divisions by positive constants only}}
ragged.dim @share(@batch) lengths (b)[n, m] -> (n floordiv m) of [@seq, @seq]

// -----

// expected-error@+1 {{ragged_dim_c10: expected a name that is not empty}}
ragged.dim @""
