// What was asked for before is not silently changed, and code that is there already is not rounded any
// more.
// RUN: %batch-opt %s --round-products-tf32 --split-input-file --verify-diagnostics

// expected-error @below {{the module's products are of bf16 already}}
module attributes {cfb.precision = #cfb<precision bf16>} {
}

// -----

module {
  // expected-error @below {{its code is made already, in another precision}}
  gpu.module @cohort_gpu {
  }
}
