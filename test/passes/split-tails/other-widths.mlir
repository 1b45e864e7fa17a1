// Kernels are lowered for vectors of 16 elements; a main part of other multiples is refused where it is
// asked for.
// RUN: %batch-opt %s --plan-kernels --lower-kernels --verify-diagnostics

ragged.dim @batch
ragged.dim @n(@batch)

!x = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// expected-error@+1 {{not supported yet: loops split at other than 16}}
cfb.kernel @twice attributes {unit = "calls", lengths = [@n], rows = [@n], ragged.split = 8 : i64} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  cfb.yield %x : !x
}
