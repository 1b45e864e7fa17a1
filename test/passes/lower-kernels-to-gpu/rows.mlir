// What folds a row is one launch of stages with a barrier after each: lanes of a warp fold, one thread
// adds what they have, and what only these stages need is in shared memory.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

// CHECK: \22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22centre$0\22
// CHECK-NOT: centre$1
// CHECK: gpu.func @centre$0(
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: arith.subf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.return
cfb.kernel @centre {
^bb0(%rows: index, %x: tensor<?x100xf32>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x100xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %e1 = tensor.empty(%rows) : tensor<?x100xf32>
  %m = linalg.broadcast ins(%s : tensor<?xf32>) outs(%e1 : tensor<?x100xf32>) dimensions = [1]
  %y = arith.subf %x, %m : tensor<?x100xf32>
  cfb.yield %y : tensor<?x100xf32>
}
