// A function whose block is to be run must be there, and a place along a third dim there is none.
// RUN: %batch-opt %s --expand-flush --split-input-file --verify-diagnostics

gpu.module @cohort_gpu {
  // expected-error @below {{expected a function `k$0` in the gpu.module}}
  func.func private @k$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0}
}

// -----

gpu.module @cohort_gpu {
  gpu.func @k$0(%rows: i64) kernel {
    // expected-error @below {{not supported yet in a flush: this dim}}
    %z = gpu.block_id z
    gpu.return
  }
  func.func private @k$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0}
}
