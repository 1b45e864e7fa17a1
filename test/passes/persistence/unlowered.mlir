// Before kernels are functions there is nothing that a flush could run.
// RUN: %batch-opt %s --persistence --verify-diagnostics

// expected-error @below {{expected a gpu.module that `lower-kernels-to-gpu` has written}}
gpu.module @cohort_gpu {
}
