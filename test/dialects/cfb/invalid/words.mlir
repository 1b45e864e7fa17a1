// Attributes that are one of some words, and parts of calls.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{cfb_words_c1: expected `cfb.granularity` to be `#cfb<granularity …>` with one of operator, block, function, but got "operator"}}
module attributes {cfb.granularity = "operator"} {}

// -----

// expected-error@+1 {{cfb_words_c1: expected `cfb.precision` to be `#cfb<precision …>` with one of f32, tf32, bf16, but got #cfb<granularity block>}}
module attributes {cfb.precision = #cfb<granularity block>} {}

// -----

// expected-error@+1 {{cfb_words_c1: expected `cfb.rounding` to be `#cfb<rounding …>` with one of fused, separate}}
module attributes {cfb.rounding} {}

// -----

// expected-error@+1 {{cfb_words_c1: expected `cfb.gradients` to be `#cfb<gradients …>` with one of all, parameters}}
module attributes {cfb.gradients} {}

// -----

// expected-error@+1 {{cfb_words_c1: expected `cfb.gradient_helper` to be `#cfb<gradient_helper …>` with one of add, add_runs, stack, zero, one}}
func.func private @f() attributes {cfb.gradient_helper = {kind = "add"}}

// -----

// expected-error@+2 {{expected ::cohort::cfb::Granularity to be one of: operator, block, function}}
// expected-error@+1 {{failed to parse Cfb_GranularityAttr}}
module attributes {cfb.granularity = #cfb<granularity layer>} {}

// -----

// expected-error@+1 {{cfb_part_c1: expected a number of at least zero of `operand`}}
func.func private @f() attributes {test.part = #cfb.part<operand>}

// -----

// expected-error@+1 {{cfb_part_c1: expected a number of at least zero of `result`}}
func.func private @f() attributes {test.part = #cfb.part<result -1>}

// -----

// expected-error@+1 {{cfb_part_c1: expected no number of `site`}}
func.func private @f() attributes {test.part = #cfb.part<site 0>}

// -----

// expected-error@+1 {{cfb_gradient_c1: expected `refused`, a text, or `arguments` and `results` of `#cfb.part`}}
func.func private @f() attributes {cfb.gradient = {arguments = ["operand 0"], results = [], sites = []}}

// -----

// expected-error@+1 {{cfb_gradient_c1}}
func.func private @f() attributes {cfb.gradient = {arguments = [#cfb.part<argument 0>], results = [], sites = []}}

// -----

// expected-error@+1 {{cfb_gradient_c1}}
func.func private @f() attributes {cfb.gradient = {arguments = [], results = [], sites = [{parameter = @w, right = #cfb.part<operand 0>}]}}

// -----

// expected-error@+1 {{cfb_gradient_c1}}
func.func private @f() attributes {cfb.gradient = {refused = "why", sites = []}}
