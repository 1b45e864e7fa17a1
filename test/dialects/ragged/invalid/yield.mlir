// A `ragged.yield` stands only where a region of this dialect ends.
// RUN: %batch-opt %s --verify-diagnostics

func.func @f() {
  // expected-error@+1 {{ragged_yield_c1: expected to be in a stage}}
  ragged.yield
}
