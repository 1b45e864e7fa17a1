// A kernel becomes a function of the ABI's signature that says what it is as JSON: operands, results
// and constants by type and name. A host scalar is what a record passes as a scalar.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK: func.func @scale(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-SAME: \22name\22:\22scale\22,\22symbol\22:\22scale\22
// CHECK-SAME: \22operands\22:[{\22row\22:{\22pool\22:{\22elem\22:\22f32\22,\22shape\22:[20]}}},{\22scalar\22:\22f32\22}]
// CHECK-SAME: \22results\22:[{\22elem\22:\22f32\22,\22shape\22:[20]}]
// CHECK-SAME: \22constants\22:[{\22plain\22:{\22param\22:\22p\22}}]
// CHECK-SAME: \22row_tile\22:1,
// CHECK-NOT: cfb.kernel @
ml_program.global private @p(#ml_program.extern<tensor<20xf32>>) : tensor<20xf32>
cfb.kernel @scale {
^bb0(%rows: index, %x: tensor<?x20xf32>, %s: tensor<?xf32>):
  %p = ml_program.global_load_const @p : tensor<20xf32>
  %e = tensor.empty(%rows) : tensor<?x20xf32>
  %sb = linalg.broadcast ins(%s : tensor<?xf32>) outs(%e : tensor<?x20xf32>) dimensions = [1]
  %pb = linalg.broadcast ins(%p : tensor<20xf32>) outs(%e : tensor<?x20xf32>) dimensions = [0]
  %a = arith.mulf %x, %sb : tensor<?x20xf32>
  %b = arith.mulf %a, %pb : tensor<?x20xf32>
  cfb.yield %b : tensor<?x20xf32>
}
func.func @main(%x: !cfb.lazy<tensor<20xf32>>, %s: f32) -> !cfb.lazy<tensor<20xf32>> {
  %r = cfb.record @scale(%x, %s) : (!cfb.lazy<tensor<20xf32>>, f32) -> !cfb.lazy<tensor<20xf32>>
  return %r : !cfb.lazy<tensor<20xf32>>
}
