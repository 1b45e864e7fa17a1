// Of a per-instance kernel nothing is read but its loops, and what they ask for is obeyed: the columns and the terms
// of a tile, and what of a side are neighbours there. A product onto what loops have stored is one launch with them.
// What threads cannot do is refused with a remark that says why.
// RUN: %batch-opt %s --lower-kernels-to-gpu --verify-diagnostics | %FileCheck %s

// CHECK: gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {onto = "
// CHECK-SAME: \22symbol\22:\22onto$0_small\22
// CHECK-SAME: \22tile\22:16},{\22length\22:{\22lengths\22:[],\22times\22:64},\22tile\22:32}]
// CHECK-SAME: \22symbol\22:\22onto$0_large\22
// CHECK-SAME: \22tile\22:64},{\22length\22:{\22lengths\22:[],\22times\22:64},\22tile\22:32}]
// CHECK-NOT: onto$1
// CHECK-NOT: others = "
// CHECK-NOT: tiles = "
// CHECK-NOT: ragged.kernel
// CHECK: gpu.func @onto$0_small(
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> f32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = {{ *}}ca
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg
// CHECK: %[[STEP:.*]] = arith.constant 8 : i64
// CHECK: scf.for
// CHECK: gpu.return
gpu.module @cohort_gpu {
  ragged.kernel @onto attributes {lengths = [@m], rows = [@m], unit = #cfb<unit calls>} {
    %0 = ragged.operand length : memref<?xi32>
    %a = ragged.operand expanded of [@m] : memref<?x?x16xf32>
    %b = ragged.operand row : memref<?x16x64xf32>
    %c = ragged.operand expanded of [@m] : memref<?x?x64xf32>
    %r = ragged.result of [@m] : memref<?x?x64xf32>
    ragged.calls {
      ragged.nest over [@m, 64] {
        %v = ragged.load %c (d0, d1) -> (d0, d1) : memref<?x?x64xf32>
        ragged.store %v, %r (d0, d1) -> (d0, d1) : memref<?x?x64xf32>
      }
      ragged.matmul over [@m, 64] depth [16] blocks [32, 8] onto into %r (d0, d1) -> (d0, d1) : memref<?x?x64xf32> left {
        %v = ragged.load %a (d0, d1, d2) -> (d0, d2) : memref<?x?x16xf32>
        ragged.yield %v : f32
      } right {
        %v = ragged.load %b (d0, d1, d2) -> (d2, d1) : memref<?x16x64xf32>
        ragged.yield %v : f32
      }
    }
  }
  // expected-remark @below {{no code for GPUs, on which its program does not run: a stage reads what other threads have stored}}
  ragged.kernel @others attributes {lengths = [@m], rows = [@m], unit = #cfb<unit calls>} {
    %0 = ragged.operand length : memref<?xi32>
    %a = ragged.operand expanded of [@m] : memref<?x?x16xf32>
    %b = ragged.operand row : memref<?x16x64xf32>
    %r = ragged.result of [@m] : memref<?x?x64xf32>
    ragged.calls {
      ragged.matmul over [@m, 64] depth [16] blocks [64, 16] into %r (d0, d1) -> (d0, d1) : memref<?x?x64xf32> left along_depth {
        %v = ragged.load %a (d0, d1, d2) -> (d0, d2) : memref<?x?x16xf32>
        ragged.yield %v : f32
      } right {
        %v = ragged.load %b (d0, d1, d2) -> (d2, d1) : memref<?x16x64xf32>
        ragged.yield %v : f32
      } by_rows finish {
        %zero = arith.constant 0.0 : f32
        %s = ragged.reduce over [64] from %zero : f32 {
        ^bb0(%sum: f32):
          %v = ragged.load %r (d0, d1, d2) -> (d0, d2) : memref<?x?x64xf32>
          %n = arith.addf %sum, %v : f32
          ragged.yield %n : f32
        }
        ragged.yield %s : f32
      }
    }
  }
  // expected-remark @below {{no code for GPUs, on which its program does not run: tiles of a product have 16, 32 or 64 columns, the same of all that are summed, and a power of two of terms from 8 on, for which there is shared memory}}
  ragged.kernel @tiles attributes {lengths = [@m], rows = [@m], unit = #cfb<unit calls>} {
    %0 = ragged.operand length : memref<?xi32>
    %a = ragged.operand expanded of [@m] : memref<?x?x16xf32>
    %b = ragged.operand row : memref<?x16x64xf32>
    %r = ragged.result of [@m] : memref<?x?x64xf32>
    ragged.calls {
      ragged.matmul over [@m, 64] depth [16] blocks [48, 16] into %r (d0, d1) -> (d0, d1) : memref<?x?x64xf32> left along_depth {
        %v = ragged.load %a (d0, d1, d2) -> (d0, d2) : memref<?x?x16xf32>
        ragged.yield %v : f32
      } right {
        %v = ragged.load %b (d0, d1, d2) -> (d2, d1) : memref<?x16x64xf32>
        ragged.yield %v : f32
      }
    }
  }
}
