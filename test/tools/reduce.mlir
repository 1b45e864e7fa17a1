// IR is made small by MLIR's reducer, which knows our dialects, and then as text.
// RUN: %batch-reduce %s --check "%batch-opt --plan-kernels --lower-kernels {} -o - | grep -q @twice" -o %t.mlir --quiet
// RUN: %FileCheck %s < %t.mlir
// RUN: %batch-opt --plan-kernels --lower-kernels %t.mlir | grep @twice

// CHECK-NOT: @once
// CHECK: cfb.kernel @twice
// CHECK-NOT: arith.mulf
// CHECK: cfb.yield %
cfb.kernel @once {
^bb0(%rows: index, %x: tensor<?x28xf32>):
  cfb.yield %x : tensor<?x28xf32>
}
cfb.kernel @twice {
^bb0(%rows: index, %x: tensor<?x28xf32>):
  %y = arith.addf %x, %x : tensor<?x28xf32>
  %z = arith.mulf %y, %x : tensor<?x28xf32>
  cfb.yield %z : tensor<?x28xf32>
}
