// What a per-instance kernel at the loop level says must be possible, whatever a call's lengths are.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_operand_c1: expected a length of the kernel for each dynamic dim}}
  %y = ragged.operand expanded of [@m] : memref<?x?x8xf32>
  ragged.calls {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_operand_c1: expected a length of the kernel for each dynamic dim}}
  %y = ragged.operand row of [@n] : memref<?x?x8xf32>
  ragged.calls {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_result_c1: expected a length of the kernel for each dynamic dim}}
  %y = ragged.result : memref<?x?x8xf32>
  ragged.calls {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_scratch_c2: expected rows of static shape}}
  %y = ragged.scratch : memref<?x?x8xf32>
  ragged.calls {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c1: expected loops to be split at 16, but got 8}}
  ragged.calls split 8 {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c2: expected a grain of 1 to 65536 rows}}
  ragged.calls grain 0 shared 0 {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c3: expected lengths of the kernel and numbers}}
  ragged.calls flops [[@m, 2]] {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c3: there is no product 1}}
  ragged.calls flops [[@n, 2]] rising [1] {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c4: expected two numbers of at least one}}
  ragged.calls padding [0, 1] {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c6: expected linear constraints of the kernel's lengths}}
  ragged.calls given affine_set<(d0, d1) : (d0 - d1 >= 0)> {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // What never holds would allow everything.
  // expected-error@+1 {{ragged_calls_c6: expected linear constraints of the kernel's lengths}}
  ragged.calls given affine_set<(d0) : (-1 >= 0)> {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  // expected-error@+1 {{ragged_calls_c6: expected linear constraints of the kernel's lengths}}
  ragged.calls given affine_set<(d0) : (d0 mod 2 == 0)> {
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_calls_c5: expected stages of a call only}}
    %0 = arith.constant 1.0 : f32
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_nest_c1: expected loops over lengths of the kernel}}
    ragged.nest over [@m, 8] {
      %0 = arith.constant 1.0 : f32
      ragged.store %0, %r (d0, d1) -> (0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_nest_c5: expected one store, the last operation}}
    ragged.nest over [@n, 8] {
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] lanes 0 {
      %0 = arith.constant 1.0 : f32
      // expected-error@+1 {{ragged_nest_c2: expected neighbouring elements along loop 0}}
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      // expected-error@+1 {{leads out of dim 0 of a call}}
      %0 = ragged.load %x (d0, d1) -> (d0 + 1, d1) : memref<?x?x8xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      // expected-error@+1 {{leads out of dim 1 of a call}}
      %0 = ragged.load %x (d0, d1) -> (d0, d1 + 1) : memref<?x?x8xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      // expected-error@+1 {{leads out of dim 0 of a call}}
      %0 = ragged.load %x (d0, d1) -> (d1, d1) : memref<?x?x8xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      // expected-error@+1 {{ragged_load_c1: expected a linear map of 2 indices to 2}}
      %0 = ragged.load %x (d0, d1) -> (d0) : memref<?x?x8xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      // expected-error@+1 {{ragged_position_c1: expected a linear map of the loops of a call to one number}}
      %1 = ragged.position (d0) -> (d0) : i32
      %0 = arith.sitofp %1 : i32 to f32
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      %z = arith.constant 0.0 : f32
      // expected-error@+1 {{ragged_reduce_c1: expected loops over lengths of the kernel}}
      %0 = ragged.reduce over [0] from %z : f32 {
      ^bb0(%s: f32):
        %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
        %b = arith.addf %s, %a : f32
        ragged.yield %b : f32
      }
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [@n, 8] {
      %z = arith.constant 0.0 : f32
      // expected-error@+1 {{ragged_reduce_c3: expected loops, and a region that ends in an operation}}
      %0 = ragged.reduce over [8] from %z : f32 {
      ^bb0(%s: f32):
        %b = arith.addf %s, %s : f32
        ragged.yield %b : f32
      }
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %r = ragged.result : memref<?x8xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [8] {
      %z = arith.constant 0.0 : f32
      // expected-error@+1 {{ragged_reduce_c2: expected to be computed for a call}}
      %0 = ragged.reduce over [8] from %z : f32 {
      ^bb0(%s: f32):
        %b = arith.addf %s, %z : f32
        ragged.yield %b : f32
      }
      ragged.store %0, %r (d0) -> (d0) : memref<?x8xf32>
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c1: expected two loops or more and one dim that is summed over}}
    ragged.matmul over [@n, 8] depth [8, 8] rows 96 blocks [8, 8] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c2: expected blocks of 1 to 2048 columns and 1 to 1024 terms}}
    ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 1025] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c2: expected blocks of `rows` that are a multiple of 12 up to 1536}}
    ragged.matmul over [@n, 8] depth [8] rows 100 blocks [8, 8] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c2: expected blocks of `rows` that are a multiple of 12 up to 1536}}
    ragged.matmul over [@n, 8] depth [8] blocks [8, 8] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c3: }}
    ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 8] into %r (d0, d1) -> (d0, d1 + 1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c3: expected a result of f32}}
    ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 8] into %x (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c4: expected a region that yields}}
    ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 8] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = arith.constant 1 : i32
      ragged.yield %a : i32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_matmul_c5: expected sums to be loaded at the index at which they are stored}}
    ragged.matmul over [@n, 8] depth [8] rows 96 blocks [8, 8] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %b = arith.constant 1.0 : f32
      ragged.yield %b : f32
    } finish {
      %s = ragged.load %r (d0, d1) -> (d0, 0) : memref<?x?x8xf32>
      ragged.yield %s : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c1: expected two loops or more and one dim}}
    ragged.online_softmax over [@n, 8] keys [@n, 8] depth 8 blocks [96, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c2: expected a depth of 1 to 1024}}
    ragged.online_softmax over [@n, 8] keys [@n] depth 2000 blocks [96, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c3: }}
    ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 256] into %r (d0, d1) -> (d0, d1 + 1) : memref<?x?x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c4: expected a region that takes}}
    ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: i32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c6: expected `until` with `masked`}}
    ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 256] into %r (d0, d1) -> (d0, d1) {masked = 0.0 : f32} : memref<?x?x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c7: expected blocks of a multiple of 12 rows up to 1536 and a multiple of 32 keys up to 1024}}
    ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 200] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  %q = ragged.result : memref<?x2x8xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_online_softmax_c5: expected sums to be loaded at the index at which they are stored}}
    ragged.online_softmax over [2, 8] keys [@n] depth 8 blocks [96, 256] into %q (d0, d1) -> (d0, d1) : memref<?x2x8xf32> left {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } right {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } values {
      %a = arith.constant 1.0 : f32
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x2x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (0, d1) : memref<?x2x8xf32>
      ragged.yield %a : f32
    }
  }
}

// -----

// A length that nothing is known of may be shorter than a loop.
ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls {
    ragged.nest over [2, 8] {
      %0 = arith.constant 1.0 : f32
      // expected-error@+1 {{leads out of dim 0 of a call}}
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

// The second part of what is four long is not behind it.
ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls given affine_set<(d0) : (d0 - 4 >= 0)> {
    ragged.nest over [2, 8] {
      %0 = arith.constant 1.0 : f32
      // expected-error@+1 {{leads out of dim 0 of a call}}
      ragged.store %0, %r (d0, d1) -> (d0 + 3, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

// At least so many is not at most so many.
ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand row : memref<?x8xf32>
  %r = ragged.result of [@n] : memref<?x?xf32>
  ragged.calls given affine_set<(d0) : (d0 - 8 >= 0)> {
    ragged.nest over [@n] {
      // expected-error@+1 {{leads out of dim 0 of a call}}
      %0 = ragged.load %x (d0) -> (d0) : memref<?x8xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x?xf32>
    }
  }
}

// -----

// What is known of one length says nothing of another.
ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@m, @n], rows = [@m]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@m] : memref<?x?x8xf32>
  ragged.calls given affine_set<(d0, d1) : (d0 - 4 >= 0, -d1 + 4 >= 0)> {
    ragged.nest over [@m, 8] {
      // expected-error@+1 {{leads out of dim 0 of a call}}
      %0 = ragged.load %x (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}

// -----

// No index is negative.
ragged.kernel @k attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls given affine_set<(d0) : (d0 - 4 >= 0)> {
    ragged.nest over [4, 8] {
      // expected-error@+1 {{leads out of dim 0 of a call}}
      %0 = ragged.load %x (d0, d1) -> (d0 - 1, d1) : memref<?x?x8xf32>
      ragged.store %0, %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
    }
  }
}
