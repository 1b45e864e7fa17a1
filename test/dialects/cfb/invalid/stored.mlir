// Names under which a parameter is stored fit its type.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{cfb_stored_c1: expected `cfb.stored` only on a global of tensor type}}
func.func private @f() attributes {cfb.stored = {name = "w"}}

// -----

// expected-error@+1 {{cfb_stored_c2: expected a `name` and perhaps `transposed`, but got "w"}}
ml_program.global public @w(#ml_program.extern<tensor<3xf32>>) : tensor<3xf32> {cfb.stored = "w"}

// -----

// expected-error@+1 {{cfb_stored_c2: expected a `name` and perhaps `transposed`}}
ml_program.global public @w(#ml_program.extern<tensor<3x3xf32>>) : tensor<3x3xf32> {cfb.stored = {name = "w", turned}}

// -----

// expected-error@+1 {{cfb_stored_c3: expected at least 3 dims, but got 'tensor<3x3xf32>'}}
ml_program.global public @w(#ml_program.extern<tensor<3x3xf32>>) : tensor<3x3xf32> {cfb.stored = {name = "l.{}.w", transposed}}
