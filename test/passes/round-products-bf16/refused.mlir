// What was asked for before is not silently changed, and code that is there already is not rounded any
// more.
// RUN: %batch-opt %s --round-products-bf16 --split-input-file --verify-diagnostics

// expected-error @below {{the module's products are of tf32 already}}
module attributes {cfb.precision = #cfb<precision tf32>} {
}

// -----

module {
  // expected-error @below {{its code is made already, in another precision}}
  gpu.module @cohort_gpu {
  }
}
