// A kernel over calls has loops that need a call's rows together, and one without lengths has no rows
// but its calls: neither is fused.
// RUN: %batch-opt %s --plan-kernels --fuse-rows | %FileCheck %s

!x = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// CHECK-NOT: fused
cfb.kernel @calls attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !x):
  cfb.yield %x : !x
}
cfb.kernel @plain {
^bb0(%rows: index, %x: tensor<?x8xf32>):
  cfb.yield %x : tensor<?x8xf32>
}
