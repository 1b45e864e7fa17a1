// A `ragged.yield` stands only where a region of this dialect ends.
// RUN: %batch-opt %s --verify-diagnostics

func.func @f() {
  // expected-error@+1 {{ragged_yield_c1: expected to be in a prelude, a loop over a dim or a stage}}
  ragged.yield
}
