// What a kernel's description says need not be text.
// RUN: %batch-opt %s --persistence --verify-diagnostics

// expected-error @below {{expected kernels' descriptions}}
gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {k = "\FF"}} {
}
