// Every stage and value of a per-instance kernel is read and printed.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s

// CHECK: #[[SET:.*]] = affine_set<(d0) : (d0 - 61 >= 0)>
// CHECK-LABEL: ragged.kernel @all
ragged.kernel @all attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  // CHECK: ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  // CHECK: ragged.result of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // CHECK: ragged.calls split 16 hoisted grain 12 shared 16 flops {{\[}}[@n, 8, 2]] rising [0] padding [4, 64] given #[[SET]] {
  ragged.calls split 16 hoisted grain 12 shared 16 flops [[@n, 8, 2]] rising [0] padding [4, 64] given affine_set<(d0) : (d0 - 61 >= 0)> {
    // CHECK: ragged.nest over [@n, 8] lanes 1 {
    ragged.nest over [@n, 8] lanes 1 {
      // CHECK: ragged.position (d0, d1) -> (d0 + 1) : i32
      %i = ragged.position (d0, d1) -> (d0 + 1) : i32
      %f = arith.sitofp %i : i32 to f32
      // CHECK: ragged.reduce over [@n] from %{{.*}} : f32 {
      %s = ragged.reduce over [@n] from %f : f32 {
      ^bb0(%sum: f32):
        %a = ragged.load %x (d0, d1, d2) -> (d2, d1) : memref<?x?x8xf32>
        %b = arith.addf %sum, %a : f32
        ragged.yield %b : f32
      }
      ragged.store %s, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
    // Of a length that is at least a number, so many elements may be read.
    // CHECK: ragged.nest over [61, 8] {
    ragged.nest over [61, 8] {
      %a = ragged.load %x (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.store %a, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
    // CHECK: ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 8] onto into %{{.*}} (d0, d1) -> (d0, d1) until 1 lanes 1 : memref<?x?x8xf32>
    // CHECK-SAME: left along_depth {
    ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 8] onto into %r (d0, d1) -> (d0, d1) until 1 lanes 1 : memref<?x?x8xf32> left along_depth {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    // CHECK: right along_depth {
    } right along_depth {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    // CHECK: by_rows finish {
    } by_rows finish {
      %a = ragged.load %r (d0, d1) -> (d0, 7) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
    // CHECK: ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 256] into %{{.*}} (d0, d1) -> (d0, d1) until 1 masked 0xFF800000 lanes 1
    ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 256] into %r (d0, d1) -> (d0, d1) until 1 masked 0xFF800000 lanes 1 : memref<?x?x8xf32> left along_depth {
      %a = ragged.load %x (d0, d1, d2, d3) -> (d0, d3) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right along_depth {
      %a = ragged.load %x (d0, d1, d2, d3) -> (d2, d3) : memref<?x?x8xf32>
      ragged.yield %a : f32
    // CHECK: scores {
    } scores {
    ^bb0(%p: f32):
      ragged.yield %p : f32
    // CHECK: values along_keys {
    } values along_keys {
      %a = ragged.load %x (d0, d1, d2) -> (d2, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    // CHECK: finish {
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}
