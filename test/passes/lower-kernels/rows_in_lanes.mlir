// Sixteen rows at a time: the list of rows is read under a mask, rows that are neighbours are loaded as a vector and
// others gathered, and the results are stored as a vector.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @single
// CHECK: scf.for %{{.*}} step %c16_i64
// CHECK: %[[MASK:.*]] = vector.create_mask
// CHECK: %[[LIST:.*]] = llvm.intr.masked.load %{{[0-9]+}}, %[[MASK]], %{{.*}} -> vector<16xi32>
// CHECK: %[[VALUES:.*]] = scf.if %{{.*}} -> (vector<16xf32>) {
// CHECK: llvm.load %{{.*}} -> vector<16xf32>
// CHECK: } else {
// CHECK: llvm.intr.masked.gather %{{[0-9]+}}, %[[MASK]],
// CHECK: %[[NEGATIVE:.*]] = arith.negf %[[VALUES]] : vector<16xf32>
// CHECK: llvm.intr.masked.store %[[NEGATIVE]], %{{[0-9]+}}, %[[MASK]]
cfb.kernel @single {
^bb0(%rows: index, %x: tensor<?xf32>):
  %y = arith.negf %x : tensor<?xf32>
  cfb.yield %y : tensor<?xf32>
}

// An element of a longer row is always gathered, and what lies in a longer row is scattered.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: scf.if
// CHECK: llvm.intr.masked.gather
// CHECK: llvm.intr.masked.scatter
cfb.kernel @columns {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  %c = tensor.extract_slice %x[0, 1] [%rows, 1] [1, 1] : tensor<?x3xf32> to tensor<?x1xf32>
  %n = arith.negf %c : tensor<?x1xf32>
  %y = tensor.concat dim(1) %n, %x : (tensor<?x1xf32>, tensor<?x3xf32>) -> tensor<?x4xf32>
  cfb.yield %y : tensor<?x4xf32>
}

// A truth value is a byte in memory.
// CHECK-LABEL: func.func @truth
// CHECK: %[[TRUTH:.*]] = arith.cmpf ogt, {{.*}} : vector<16xf32>
// CHECK: %[[BYTES:.*]] = arith.extui %[[TRUTH]] : vector<16xi1> to vector<16xi8>
// CHECK: llvm.intr.masked.store %[[BYTES]], {{.*}} : vector<16xi8>, vector<16xi1> into !llvm.ptr
cfb.kernel @truth {
^bb0(%rows: index, %x: tensor<?xf32>, %limit: tensor<?xf32>):
  %y = arith.cmpf ogt, %x, %limit : tensor<?xf32>
  cfb.yield %y : tensor<?xi1>
}
