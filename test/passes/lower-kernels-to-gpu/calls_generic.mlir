// What is not a product is a launch a result: elements that are folds by warps, whose lanes meet at a
// barrier; others by a thread each, with no shared memory.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

// CHECK: cfb.gpu_kernels = {rest =
// CHECK-SAME: \22symbol\22:\22rest$0\22
// CHECK-SAME: \22dims\22:[{\22length\22:{\22lengths\22:[],\22times\22:3},\22tile\22:4}],\22work\22:{\22lengths\22:[0],\22times\22:3}
// CHECK-SAME: \22symbol\22:\22rest$1\22
// CHECK-SAME: \22shared_bytes\22:0,\22calls\22:{\22dims\22:[{\22length\22:{\22lengths\22:[],\22times\22:3},\22tile\22:512}]
// CHECK: gpu.func @rest$0(
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.func @rest$1(
// CHECK-NOT: gpu.barrier
// CHECK: arith.negf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.return
cfb.kernel @rest attributes {lengths = [@n], rows = [], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>, %x: tensor<?x?x3xf32, #ragged.shape<@batch, @n(@batch), _>>, %y: tensor<?x3xf32>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%calls) : tensor<?x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?x3xf32, #ragged.shape<@batch, @n(@batch), _>>) outs(%z : tensor<?x3xf32>) dimensions = [1]
  %m = arith.negf %y : tensor<?x3xf32>
  cfb.yield %s, %m : tensor<?x3xf32>, tensor<?x3xf32>
}
