// What is given of a call's lengths allows the maps that it bounds: parts of known size in a dim as long as a
// length, a loop as long as a length in a dim of known size, one length's loop in a dim as long as another.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s

// CHECK: #[[PARTS:.*]] = affine_set<(d0, d1) : (d1 - 4 >= 0)>
// CHECK: #[[AT_MOST:.*]] = affine_set<(d0) : (-d0 + 6 >= 0)>
// CHECK: #[[OF_TWO:.*]] = affine_set<(d0, d1) : (d0 - d1 == 0)>

// CHECK-LABEL: ragged.kernel @parts
ragged.kernel @parts attributes {unit = #cfb<unit calls>, lengths = [@n, @q], rows = [@n]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x4xf32>
  %r = ragged.result of [@n, @q] : memref<?x?x?xf32>
  // CHECK: ragged.calls given #[[PARTS]] {
  ragged.calls given affine_set<(d0, d1) : (d1 - 4 >= 0)> {
    ragged.nest over [@n, 2] {
      %a = ragged.load %x (d0, d1) -> (d0, d1) : memref<?x?x4xf32>
      ragged.store %a, %r (d0, d1) -> (d0, d1) : memref<?x?x?xf32>
    }
    ragged.nest over [@n, 2] {
      %a = ragged.load %x (d0, d1) -> (d0, d1 + 2) : memref<?x?x4xf32>
      ragged.store %a, %r (d0, d1) -> (d0, d1 + 2) : memref<?x?x?xf32>
    }
  }
}

// CHECK-LABEL: ragged.kernel @at_most
ragged.kernel @at_most attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand row : memref<?x8xf32>
  %r = ragged.result of [@n] : memref<?x?xf32>
  // CHECK: ragged.calls given #[[AT_MOST]] {
  ragged.calls given affine_set<(d0) : (-d0 + 6 >= 0)> {
    ragged.nest over [@n] {
      %a = ragged.load %x (d0) -> (d0 + 2) : memref<?x8xf32>
      ragged.store %a, %r (d0) -> (d0) : memref<?x?xf32>
    }
  }
}

// CHECK-LABEL: ragged.kernel @of_two
ragged.kernel @of_two attributes {unit = #cfb<unit calls>, lengths = [@m, @n], rows = [@m]} {
  %x = ragged.operand expanded of [@n] : memref<?x?xf32>
  %r = ragged.result of [@m] : memref<?x?xf32>
  // CHECK: ragged.calls given #[[OF_TWO]] {
  ragged.calls given affine_set<(d0, d1) : (d0 - d1 == 0)> {
    ragged.nest over [@m] {
      %a = ragged.load %x (d0) -> (d0) : memref<?x?xf32>
      ragged.store %a, %r (d0) -> (d0) : memref<?x?xf32>
    }
  }
}
