// Launches of a wave are beside each other in what the runtime is told, and no two of different waves are; once-run
// stages of a wave are one launch, not one with those outside.
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s

// CHECK: cell = "{\22constants\22
// CHECK-SAME: \22symbol\22:\22cell$0\22
// CHECK-SAME: \22symbol\22:\22cell$1\22
// CHECK-NOT: beside
// CHECK-SAME: \22symbol\22:\22cell$2\22
// CHECK-SAME: \22beside\22:true
gpu.module @cohort_gpu {
ragged.kernel @cell {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  %q = ragged.result : memref<?x4xf32>
  %b = ragged.param @b : memref<4xf32>
  %s = ragged.scratch : memref<4xf32>
  %t = ragged.scratch : memref<4xf32>
  ragged.nest over [4] by 1 {
    %0 = ragged.load %b (d0) -> (d0) : memref<4xf32>
    %1 = math.tanh %0 : f32
    ragged.store %1, %s (d0) -> (d0) : memref<4xf32>
  }
  ragged.wave {
    ragged.nest over [4] by 1 {
      %0 = ragged.load %s (d0) -> (d0) : memref<4xf32>
      ragged.store %0, %t (d0) -> (d0) : memref<4xf32>
    }
    ragged.blocks of 96 tile 1 {
      ragged.nest over [4] by 1 {
        %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
        %1 = ragged.load %s (d0) -> (d0) : memref<4xf32>
        %2 = arith.addf %0, %1 : f32
        ragged.store %2, %r (d0) -> (d0) : memref<?x4xf32>
      }
    }
  }
}
}
cfb.kernel @cell {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  cfb.yield %x : tensor<?x4xf32>
}
