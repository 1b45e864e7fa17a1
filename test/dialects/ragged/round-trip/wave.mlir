// Launches of a GPU's kernel that run side by side, of rows and of calls: all of it comes back from text as it was.
// RUN: %batch-opt %s | %FileCheck %s
// RUN: diff <(%batch-opt %s) <(%batch-opt %s | %batch-opt)

// CHECK: ragged.wave {
// CHECK-NEXT: ragged.nest over [4] by 1 {
// CHECK: ragged.blocks of 96 tile 1 {
// CHECK: ragged.calls {
// CHECK-NEXT: ragged.wave {
// CHECK-NEXT: ragged.nest over [@n] {
// CHECK: ragged.nest over [@n] {
gpu.module @g {
  ragged.kernel @rows {
    %x = ragged.operand row : memref<?x4xf32>
    %r = ragged.result : memref<?x4xf32>
    %b = ragged.param @b : memref<4xf32>
    %s = ragged.scratch : memref<4xf32>
    ragged.wave {
      ragged.nest over [4] by 1 {
        %0 = ragged.load %b (d0) -> (d0) : memref<4xf32>
        ragged.store %0, %s (d0) -> (d0) : memref<4xf32>
      }
      ragged.blocks of 96 tile 1 {
        ragged.nest over [4] by 1 {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
          ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
        }
      }
    }
  }
  ragged.kernel @calls attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>], unit = #cfb<unit calls>} {
    %n = ragged.operand length : memref<?xi32>
    %x = ragged.operand expanded of [@n] : memref<?x?xf32>
    %r = ragged.result of [@n] : memref<?x?xf32>
    %q = ragged.result of [@n] : memref<?x?xf32>
    ragged.calls {
      ragged.wave {
        ragged.nest over [@n] {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
          ragged.store %0, %r (d0) -> (d0) : memref<?x?xf32>
        }
        ragged.nest over [@n] {
          %0 = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
          ragged.store %0, %q (d0) -> (d0) : memref<?x?xf32>
        }
      }
    }
  }
}
