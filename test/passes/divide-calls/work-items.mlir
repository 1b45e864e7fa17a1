// A work item of a call begins at a multiple of all tiles and blocks of its stages, and rows that all work items need packed are
// counted for each. Of products, those that end at a mask are dearer in later rows, which is known by their extent.
// What a product's sums start from is computed as the product is. Where each row needs a fold over all rows, or a
// call has no rows of its own, calls stay whole.
// RUN: %batch-opt %s --divide-calls | %FileCheck %s

// CHECK-LABEL: ragged.kernel @triangle
// CHECK: ragged.calls grain 12 shared 16 flops {{\[}}[@n, @n, 32], [@n, @n, 64]] rising [1] {
ragged.kernel @triangle attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  ragged.operand length : memref<?xi32>
  %a = ragged.operand expanded of [@n, @n] : memref<?x?x?xf32>
  %x = ragged.operand expanded of [@n] : memref<?x?x32xf32>
  %r = ragged.result of [@n] : memref<?x?x32xf32>
  ragged.calls flops [[@n, @n, 32], [@n, @n, 64]] {
    ragged.nest over [@n, 32] {
      %0 = ragged.load %x (d0, d1) -> (d0, d1) : memref<?x?x32xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x32xf32>
    }
    ragged.matmul over [@n, 32] depth [@n] rows 96 blocks [32, 256] onto into %r (d0, d1) -> (d0, d1) until 1 : memref<?x?x32xf32> left along_depth {
      %0 = ragged.load %a (d0, d1, d2) -> (d0, d2) : memref<?x?x?xf32>
      ragged.yield %0 : f32
    } right {
      %0 = ragged.load %x (d0, d1, d2) -> (d2, d1) : memref<?x?x32xf32>
      ragged.yield %0 : f32
    }
  }
}

// CHECK-LABEL: ragged.kernel @twice
// CHECK: ragged.calls grain 16 shared 0 {
ragged.kernel @twice attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?xf32>
  %r = ragged.result of [@n] : memref<?x?xf32>
  ragged.calls {
    ragged.nest over [@n] lanes 0 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
      %1 = arith.addf %0, %0 : f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x?xf32>
    }
  }
}

// CHECK-LABEL: ragged.kernel @centred
// CHECK: ragged.calls {
ragged.kernel @centred attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?xf32>
  %r = ragged.result of [@n] : memref<?x?xf32>
  ragged.calls {
    ragged.nest over [@n] lanes 0 {
      %zero = arith.constant 0.0 : f32
      %sum = ragged.reduce over [@n] from %zero : f32 {
      ^bb0(%s: f32):
        %0 = ragged.load %x (d0, d1) -> (d1) : memref<?x?xf32>
        %1 = arith.addf %s, %0 : f32
        ragged.yield %1 : f32
      }
      %0 = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
      %1 = arith.subf %0, %sum : f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x?xf32>
    }
  }
}

// CHECK-LABEL: ragged.kernel @sum
// CHECK: ragged.calls {
ragged.kernel @sum attributes {lengths = [@n], rows = [], unit = #cfb<unit calls>} {
  ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?xf32>
  %r = ragged.result : memref<?x1xf32>
  ragged.calls {
    ragged.nest over [1] {
      %zero = arith.constant 0.0 : f32
      %sum = ragged.reduce over [@n] from %zero : f32 {
      ^bb0(%s: f32):
        %0 = ragged.load %x (d0, d1) -> (d1) : memref<?x?xf32>
        %1 = arith.addf %s, %0 : f32
        ragged.yield %1 : f32
      }
      ragged.store %sum, %r (d0) -> (d0) : memref<?x1xf32>
    }
  }
}
