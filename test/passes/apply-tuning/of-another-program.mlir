// A choice of a program that has changed since is passed over, with a warning; what cannot be is an error.
// RUN: %batch-opt %s --apply-tuning --split-input-file --verify-diagnostics

// expected-warning@+1 {{the tuning is of another program: there is no kernel `gone`}}
module attributes {cfb.tuning = {gone = {rows = 48 : i64}, copy = {tile = 6 : i64}}} {
  // expected-warning@+1 {{the tuning is of another program: `copy` has no `tile`}}
  ragged.kernel @copy {
    %x = ragged.operand row : memref<?x28xf32>
    %r = ragged.result : memref<?x28xf32>
    ragged.blocks of 96 tile 1 {
      ragged.nest over [28] lanes 0 by 16 {
        %0 = ragged.load %x (d0) -> (d0) : memref<?x28xf32>
        ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
      }
    }
  }
}

// -----

// expected-error@+1 {{there is no choice `row`, which `cell` is to have; there are fused_columns, fused_rows, tails, rows, tile, width, product_rows, product_columns, product_terms, softmax_rows}}
module attributes {cfb.tuning = {cell = {row = 48 : i64}}} {
}

// -----

// expected-error@+1 {{`cell`: expected `tile` to be 1, 2, 4, 6, 8 or 12, but got 5}}
module attributes {cfb.tuning = {cell = {tile = 5 : i64}}} {
}

// -----

// expected-error@+1 {{expected `rows` of `cell` to be a number}}
module attributes {cfb.tuning = {cell = {rows = "many"}}} {
}

// -----

// expected-error@+1 {{expected a dictionary of choices for `cell`}}
module attributes {cfb.tuning = {cell = 48 : i64}} {
}

// -----

// expected-error@+1 {{expected `cfb.tuning` to be a dictionary of kernels, each with its choices}}
module attributes {cfb.tuning = 48 : i64} {
}
