// What folds a row is one launch of stages with a barrier after each: lanes of a warp fold, one thread
// adds what they have, and what only these stages need is in shared memory. Rows of a multiple of four
// floats are loaded and stored by 16 bytes; a width of 25 is not, and neither is what takes it.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s
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
gpu.module @cohort_gpu {
  ragged.kernel @centre {
    %0 = ragged.operand row : memref<?x100xf32>
    %1 = ragged.result : memref<?x100xf32>
    %2 = ragged.scratch on_chip : memref<?xf32>
    ragged.blocks of 10 tile 1 {
      ragged.fold over [100] folding [0] into %2 () -> (0) lanes 0 vectors 4 : memref<?xf32> from {
        %cst = arith.constant 0.000000e+00 : f32
        ragged.yield %cst : f32
      } by {
      ^bb0(%arg0: f32):
        %3 = ragged.load %0 (d0) -> (d0) : memref<?x100xf32>
        %4 = arith.addf %arg0, %3 : f32
        ragged.yield %4 : f32
      }
      ragged.nest over [100] by 4 {
        %3 = ragged.load %0 (d0) -> (d0) : memref<?x100xf32>
        %4 = ragged.load %2 (d0) -> (0) : memref<?xf32>
        %5 = arith.subf %3, %4 : f32
        ragged.store %5, %1 (d0) -> (d0) : memref<?x100xf32>
      }
    }
  }
  ragged.kernel @awkward {
    %0 = ragged.operand row : memref<?x25xf32>
    %1 = ragged.result : memref<?x25xf32>
    ragged.blocks of 40 tile 1 {
      ragged.nest over [25] by 1 {
        %2 = ragged.load %0 (d0) -> (d0) : memref<?x25xf32>
        %3 = arith.negf %2 : f32
        ragged.store %3, %1 (d0) -> (d0) : memref<?x25xf32>
      }
    }
  }
  ragged.kernel @total {
    %0 = ragged.operand list : memref<?x32xf32>
    %1 = ragged.result : memref<?x32xf32>
    ragged.blocks of 32 tile 1 {
      ragged.fold_list %0 over [32] into %1 (d0) -> (d0) vectors 4 : memref<?x32xf32>, memref<?x32xf32> from {
        %cst = arith.constant 0.000000e+00 : f32
        ragged.yield %cst : f32
      } by {
      ^bb0(%arg0: f32, %arg1: f32):
        %2 = arith.addf %arg0, %arg1 : f32
        ragged.yield %2 : f32
      }
    }
  }
}
