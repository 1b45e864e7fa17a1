// Launches of a GPU's kernel that need nothing of each other become waves, each launch in the first one in which
// nothing waits: also past launches that do wait. What is outside of a gpu.module is left alone.
// RUN: %batch-opt %s --fuse-launches | %FileCheck %s
// RUN: %batch-opt %s --fuse-launches --fuse-launches | %FileCheck %s

// CHECK-LABEL: gpu.module
gpu.module @cohort_gpu {
// The second product reads what the stage of rows made, and the third does not.
// CHECK-LABEL: ragged.kernel @cell
// CHECK: ragged.scratch
// CHECK-NEXT: ragged.wave {
// CHECK-NEXT: ragged.blocks of 96 tile 1 {
// CHECK: ragged.tiles over [8]
// CHECK: ragged.products %1
// CHECK: ragged.tiles over [4]
// CHECK: ragged.products %5
// CHECK-NOT: ragged.wave
ragged.kernel @cell {
  %x = ragged.operand row : memref<?x4xf32>
  %y = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  %q = ragged.result : memref<?x8xf32>
  %w = ragged.param @w : memref<4x8xf32>
  %s = ragged.scratch : memref<?x4xf32>
  ragged.blocks of 96 tile 1 {
    ragged.nest over [4] by 1 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      %1 = math.tanh %0 : f32
      ragged.store %1, %s (d0) -> (d0) : memref<?x4xf32>
    }
  }
  ragged.tiles over [4] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    %0 = ragged.products %s () -> (0) with %w (d0, d1) -> (d0 * 8 + d1) k 4 columns 8 gates [0] copies [4, 4] from %zero : memref<?x4xf32>, memref<4x8xf32>, f32 -> f32
    ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
  }
  ragged.tiles over [8] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    %0 = ragged.products %y () -> (0) with %w (d0, d1) -> (d0 * 8 + d1) k 4 columns 8 gates [0] copies [4, 4] from %zero : memref<?x4xf32>, memref<4x8xf32>, f32 -> f32
    ragged.store %0, %q (d0) -> (d0) : memref<?x8xf32>
  }
}
// Two launches that write parts of one result stay apart, and so do those in a chain.
// CHECK-LABEL: ragged.kernel @chain
// CHECK-NOT: ragged.wave
ragged.kernel @chain {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x8xf32>
  ragged.blocks of 96 tile 1 {
    ragged.nest over [4] by 1 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x8xf32>
    }
  }
  ragged.blocks of 96 tile 1 {
    ragged.nest over [4] by 1 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0 + 4) : memref<?x8xf32>
    }
  }
}
// Of a call each stage is a launch.
// CHECK-LABEL: ragged.kernel @calls
// CHECK: ragged.calls {
// CHECK-NEXT: ragged.wave {
// CHECK-NEXT: ragged.nest
// CHECK: ragged.nest
ragged.kernel @calls attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>], unit = #cfb<unit calls>} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?xf32>
  %r = ragged.result of [@n] : memref<?x?xf32>
  %q = ragged.result of [@n] : memref<?x?xf32>
  ragged.calls {
    ragged.nest over [@n] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
      %1 = math.tanh %0 : f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x?xf32>
    }
    ragged.nest over [@n] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
      %1 = math.exp %0 : f32
      ragged.store %1, %q (d0) -> (d0) : memref<?x?xf32>
    }
  }
}
}
