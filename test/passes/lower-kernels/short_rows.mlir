// Rows shorter than a vector are read and written under a mask: what lies behind is not theirs.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @short
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
cfb.kernel @short {
^bb0(%rows: index, %x: tensor<?x5xf32>):
  %n = arith.negf %x : tensor<?x5xf32>
  cfb.yield %n : tensor<?x5xf32>
}
