// What folds a row is one launch of stages with a barrier after each: lanes of a warp fold, one thread
// adds what they have, and what only these stages need is in shared memory. Rows of a multiple of four
// floats are loaded and stored by 16 bytes; a width of 25 is not, and neither is what takes it.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

// CHECK: \22scratch_bytes_per_row\22:0,\22launches\22:[{\22functions\22:[{\22symbol\22:\22centre$0\22
// CHECK-NOT: centre$1
// CHECK: gpu.func @centre$0(
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-COUNT-4: arith.subf
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: gpu.return

// CHECK: gpu.func @awkward$0(
// CHECK-NOT: vector<4xf32>
// CHECK: arith.negf
// CHECK-NOT: vector<4xf32>
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<1>
// CHECK-NOT: vector<4xf32>
// CHECK: gpu.return

// CHECK: gpu.func @total$0(
// CHECK: %[[SUMS:.*]]:4 = scf.for {{.*}} -> (f32, f32, f32, f32)
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: vector.from_elements %[[SUMS]]#0, %[[SUMS]]#1, %[[SUMS]]#2, %[[SUMS]]#3
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

cfb.kernel @awkward {
^bb0(%rows: index, %x: tensor<?x25xf32>):
  %y = arith.negf %x : tensor<?x25xf32>
  cfb.yield %y : tensor<?x25xf32>
}

cfb.kernel @total {
^bb0(%rows: index, %list: !cfb.rows<tensor<32xf32>>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = cfb.reduce_rows %list init(%z) : (!cfb.rows<tensor<32xf32>>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    cfb.yield %c : f32
  }
  cfb.yield %s : tensor<?x32xf32>
}
