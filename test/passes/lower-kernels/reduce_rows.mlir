// A row folds the entries of its own list, in order: from its offset to the next one's, with what is
// carried in registers. The description tells the runtime that the operand is a list.
// RUN: %batch-opt %s --plan-kernels --lower-kernels --canonicalize --cse | %FileCheck %s

// CHECK-LABEL: func.func @k
// CHECK-SAME: \22operands\22:[{\22rows\22:{\22pool\22:{\22elem\22:\22f32\22,\22shape\22:[32]}}}]
// CHECK: %[[FIRST:[0-9]+]] = arith.extui
// CHECK: %[[END:[0-9]+]] = arith.extui
// CHECK: scf.for %{{[a-z0-9]+}} = %[[FIRST]] to %[[END]] step
// CHECK-SAME: iter_args(%[[A:[a-z0-9]+]] = %cst, %[[B:[a-z0-9]+]] = %cst) -> (vector<16xf32>, vector<16xf32>)
// CHECK: arith.addf %[[A]], %{{.*}} : vector<16xf32>
// CHECK: arith.addf %[[B]], %{{.*}} : vector<16xf32>
// CHECK: scf.yield
// CHECK: llvm.store
cfb.kernel @k {
^bb0(%rows: index, %list: !cfb.rows<tensor<32xf32>>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = cfb.reduce_rows %list init(%z) : (!cfb.rows<tensor<32xf32>>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  ^bb0(%acc: f32, %x: f32):
    %n = arith.addf %acc, %x : f32
    cfb.yield %n : f32
  }
  cfb.yield %s : tensor<?x32xf32>
}
