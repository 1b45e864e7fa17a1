// Slices, broadcasts and arithmetic are one loop over vectors: slices are addresses, a value that two
// results need is computed once, and nothing goes through the scratch. The last vector of a row
// overlaps the one before instead of being masked.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @gates
// CHECK: scf.for {{.*}} step %c96_i64
// CHECK: scf.for
// CHECK: scf.for {{.*}} step %c16_i64
// CHECK: arith.minsi
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: arith.mulf %{{.*}} : vector<16xf32>
// CHECK-NOT: arith.mulf
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
// CHECK: arith.negf %{{.*}} : vector<16xf32>
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
// CHECK-NOT: masked
cfb.kernel @gates {
^bb0(%rows: index, %x: tensor<?x56xf32>):
  %a = tensor.extract_slice %x[0, 0] [%rows, 28] [1, 1] : tensor<?x56xf32> to tensor<?x28xf32>
  %b = tensor.extract_slice %x[0, 28] [%rows, 28] [1, 1] : tensor<?x56xf32> to tensor<?x28xf32>
  %c = arith.mulf %a, %b : tensor<?x28xf32>
  %d = arith.negf %c : tensor<?x28xf32>
  cfb.yield %c, %d : tensor<?x28xf32>, tensor<?x28xf32>
}
