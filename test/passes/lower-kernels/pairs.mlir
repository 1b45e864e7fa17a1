// Long rows are computed two vectors at a time, so that the processor always has two independent
// chains of operations at hand; what is read element by element, a stride apart, is not.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @long
// CHECK: scf.for {{.*}} step %c32_i64
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<32xf32>
// CHECK: arith.mulf %{{.*}} : vector<32xf32>
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<32xf32>, !llvm.ptr
cfb.kernel @long {
^bb0(%rows: index, %x: tensor<?x70xf32>):
  %y = arith.mulf %x, %x : tensor<?x70xf32>
  cfb.yield %y : tensor<?x70xf32>
}

// CHECK-LABEL: func.func @strided
// CHECK-NOT: vector<32xf32>
// CHECK: llvm.intr.masked.gather
// CHECK-NOT: vector<32xf32>
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
cfb.kernel @strided {
^bb0(%rows: index, %x: tensor<?x70x3xf32>):
  %e = tensor.empty(%rows) : tensor<?x3x70xf32>
  %t = linalg.transpose ins(%x : tensor<?x70x3xf32>) outs(%e : tensor<?x3x70xf32>) permutation = [0, 2, 1]
  %y = arith.mulf %t, %t : tensor<?x3x70xf32>
  cfb.yield %y : tensor<?x3x70xf32>
}
