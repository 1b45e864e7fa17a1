// Kernels that nothing has planned for a GPU are an error, rather than a program without code for one.
// RUN: %batch-opt %s --lower-kernels-to-gpu --verify-diagnostics --split-input-file

// expected-error @below {{expected a `gpu.module` with the kernel's loops, as `plan-kernels-for-gpu` leaves it}}
cfb.kernel @rows {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  cfb.yield %x : tensor<?x4xf32>
}

// -----

gpu.module @cohort_gpu {}

// expected-error @below {{expected a `gpu.module` with the kernel's loops, as `plan-kernels-for-gpu` leaves it}}
cfb.kernel @calls attributes {lengths = [@n], rows = [], unit = #cfb<unit calls>} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
