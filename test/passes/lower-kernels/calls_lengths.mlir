// Code for a call reads its lengths from the first operands of a kernel: one that is declared elsewhere, or not at all, is
// refused, not read from another place.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics --lower-kernels

ragged.kernel @late attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  // expected-error @below {{expected an operand for each of `lengths`, and all others after}}
  %x = ragged.operand expanded of [@n] : memref<?x?x4xf32>
  %n = ragged.operand length : memref<?xi32>
  %r = ragged.result of [@n] : memref<?x?x4xf32>
  ragged.calls {
    ragged.nest over [@n, 4] {
      %v = ragged.load %x (d0, d1) -> (d0, d1) : memref<?x?x4xf32>
      ragged.store %v, %r (d0, d1) -> (d0, d1) : memref<?x?x4xf32>
    }
  }
}

// -----

// expected-error @below {{expected an operand for each of `lengths`, and all others after}}
ragged.kernel @without attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  %r = ragged.result of [@n] : memref<?x?x4xf32>
  ragged.calls {
    ragged.nest over [@n, 4] {
      %v = arith.constant 1.0 : f32
      ragged.store %v, %r (d0, d1) -> (d0, d1) : memref<?x?x4xf32>
    }
  }
}
