// What a kernel at the loop level says must be possible: what it asks for, and where it reads and writes.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{ragged_kernel_c1: expected the region to end in `ragged.blocks`}}
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_kernel_c1: expected declarations and stages only}}
  %x = arith.constant 1 : i32
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  %r = ragged.result : memref<?x4xf32>
  // expected-error@+1 {{ragged_kernel_c2: expected what runs once a call to touch what all rows share only}}
  ragged.nest over [4] {
    %0 = arith.constant 1.0 : f32
    ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
  }
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_param_c1: expected panels of 32 columns or of 1, but got 16}}
  %w = ragged.param @w panels 16 : memref<4x4xf32>
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_param_c2: expected panels of what is kept in bf16}}
  %w = ragged.param @w bf16 : memref<4x4xf32>
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_param_c1: expected panels of an f32 of at least two dims}}
  %w = ragged.param @w panels 32 : memref<4xf32>
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_constant_c1: expected memory of the shape and elements of}}
  %c = ragged.constant dense<[1, 2]> : tensor<2xi32> : memref<3xi32>
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_scratch_c1: expected `products` to divide the elements of a row, but got 3}}
  %s = ragged.scratch products 3 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_blocks_c1: expected `of` to be from 1 to 65536, but got 0}}
  ragged.blocks of 0 tile 12 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_blocks_c2: expected `tile` to be from 1 to 65536, but got 0}}
  ragged.blocks of 96 tile 0 {
  }
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_blocks_c4: expected `fused` rows of a kernel with `lengths`}}
  ragged.blocks fused of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_blocks_c3: expected stages only}}
    %0 = arith.constant 1 : i32
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      // expected-error@+1 {{ragged_load_c1: expected a linear map of 1 indices to one number}}
      %0 = ragged.load %x (d0, d1) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

// Nothing but sums of multiples is an address.
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      // expected-error@+1 {{ragged_load_c1: expected a linear map of 1 indices to one number}}
      %0 = ragged.load %x (d0) -> (d0 mod 2) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      // expected-error@+1 {{ragged_load_c2: affine_map<(d0) -> (d0 + 1)> leads out of a row}}
      %0 = ragged.load %x (d0) -> (d0 + 1) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand list : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      // expected-error@+1 {{ragged_load_c3: expected memory whose elements can be loaded, but it is a list}}
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.param @w panels 32 : memref<2x2xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      // expected-error@+1 {{ragged_load_c3: expected memory whose elements can be loaded, but it is packed}}
      %0 = ragged.load %x (d0) -> (d0) : memref<2x2xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      // expected-error@+1 {{ragged_store_c1: expected a linear map of 1 indices to one number}}
      ragged.store %0, %r () -> (0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      // expected-error@+1 {{ragged_store_c2: affine_map<(d0) -> (d0 * 2)> leads out of a row}}
      ragged.store %0, %r (d0) -> (d0 * 2) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      // expected-error@+1 {{ragged_store_c3: expected a result or scratch}}
      ragged.store %0, %x (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_nest_c1: expected loops of at least one and fewer than 2^63 iterations}}
    ragged.nest over [4, 0] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_nest_c2: there is no loop 1}}
    ragged.nest over [4] lanes 1 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x8xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] lanes 0 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      // expected-error@+1 {{ragged_nest_c2: expected neighbouring elements along loop 0, which runs in vectors}}
      ragged.store %0, %r (d0) -> (d0 * 2) : memref<?x8xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_nest_c3: expected vectors of 16 or 32 elements, but got 8}}
    ragged.nest over [4] lanes 0 by 8 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_nest_c3: expected at least 32 iterations, but loop 0 has 4}}
    ragged.nest over [4] lanes 0 by 32 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x80xf32>
  %r = ragged.result : memref<?x40xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [40] lanes 0 by 32 {
      // expected-error@+1 {{ragged_nest_c3: expected one element or neighbouring ones along loop 0}}
      %0 = ragged.load %x (d0) -> (d0 * 2) : memref<?x80xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x40xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      // expected-error@+1 {{ragged_nest_c4: expected elements of f32, i32 or i1, but got}}
      %1 = arith.constant 1 : index
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.nest over [4] {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      // expected-error@+1 {{ragged_nest_c4: expected `arith` and `math` on scalars only}}
      %1 = tensor.empty() : tensor<4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c1: expected loops of at least one}}
    ragged.fold over [4, -8] folding [1] into %r (d0) -> (d0) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c2: expected numbers of loops in rising order, but got 2}}
    ragged.fold over [4, 8] folding [2] into %r (d0) -> (d0) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c2: expected numbers of loops in rising order, but got 1}}
    ragged.fold over [4, 8] folding [1, 1] into %r (d0) -> (d0) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c3: expected the last kept loop or a folded one, but got 0}}
    ragged.fold over [2, 2, 8] folding [2] into %r (d0, d1) -> (d0 * 2 + d1) lanes 0 : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1, d2) -> (d0 * 16 + d1 * 8 + d2) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c4: expected `vectors` to be from 1 to 8, but got 9}}
    ragged.fold over [4, 8] folding [1] into %r (d0) -> (d0) lanes 1 vectors 9 : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c4: expected `neighbours` to be from 1 to 8, but got 0}}
    ragged.fold over [4, 8] folding [1] into %r (d0) -> (d0) lanes 1 neighbours 0 : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c5: expected the step to end in an operation that combines}}
    ragged.fold over [4, 8] folding [1] into %r (d0) -> (d0) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.subf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c5: expected the step to end in an operation that combines}}
    ragged.fold over [4, 8] folding [1] into %r (d0) -> (d0) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %0, %acc : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c6: affine_map<(d0) -> (d0 + 1)> leads out of a row}}
    ragged.fold over [4, 8] folding [1] into %r (d0) -> (d0 + 1) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  %y = ragged.operand row : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c6: expected a result or scratch}}
    ragged.fold over [4, 8] folding [1] into %y (d0) -> (d0) : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %l = ragged.operand list : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_list_c1: expected the loops of a row of}}
    ragged.fold_list %l over [2] into %r (d0) -> (d0) : memref<?x4xf32>, memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32, %e: f32):
      %1 = arith.addf %acc, %e : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %l = ragged.operand list : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_list_c2: expected `vectors` to be from 1 to 8, but got 0}}
    ragged.fold_list %l over [4] into %r (d0) -> (d0) vectors 0 : memref<?x4xf32>, memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32, %e: f32):
      %1 = arith.addf %acc, %e : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_list_c3: expected an operand that is a list}}
    ragged.fold_list %x over [4] into %r (d0) -> (d0) : memref<?x4xf32>, memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32, %e: f32):
      %1 = arith.addf %acc, %e : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %l = ragged.operand list : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_list_c4: expected a region that takes}}
    ragged.fold_list %l over [4] into %r (d0) -> (d0) : memref<?x4xf32>, memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      ragged.yield %acc : f32
    }
  }
}

// -----

ragged.kernel @k {
  %l = ragged.operand list : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_list_c5: expected neighbouring results along the last loop}}
    ragged.fold_list %l over [4] into %r (d0) -> (3 - d0) : memref<?x4xf32>, memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32, %e: f32):
      %1 = arith.addf %acc, %e : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_loops_c1: expected loops of at least one}}
    ragged.loops over [4, 0] folding [1] stored [0] into %r [affine_map<(d0, d1) -> (d0)>] : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_loops_c2: expected numbers of loops in rising order, but got 0}}
    ragged.loops over [4, 8] folding [1, 0] stored [0] into %r [affine_map<(d0, d1) -> (d0)>] : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_loops_c3: expected a region that yields}}
    ragged.loops over [4, 8] folding [1] stored [0] into %r [affine_map<(d0, d1) -> (d0)>] : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = arith.constant 1 : i32
      ragged.yield %0 : i32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_loops_c4: expected a result of the elements of}}
    ragged.loops over [4, 8] folding [1] stored [1] into %r [affine_map<(d0, d1) -> (d0)>] : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_loops_c4: expected a map and a number of a result for each memory}}
    ragged.loops over [4, 8] folding [1] stored [0] into %r [] : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x8xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    ragged.loops over [4, 8] folding [1] stored [0] into %r [affine_map<(d0, d1) -> (d0)>] : memref<?x4xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%acc: f32):
      // expected-error@+1 {{ragged_index_c1: there is no loop 2}}
      %i = ragged.index 2 : i64
      %0 = ragged.load %x (d0, d1) -> (d0 * 8 + d1) : memref<?x4x8xf32>
      %1 = arith.addf %acc, %0 : f32
      ragged.yield %1 : f32
    }
  }
}

// -----

ragged.kernel @k {
  %s = ragged.scratch : memref<4x32xf32>
  // expected-error@+1 {{ragged_pack_panels_c1: expected two loops, and scratch of whole panels}}
  ragged.pack_panels over [4, 33] into %s : memref<4x32xf32> {
    %0 = arith.constant 1.0 : f32
    ragged.yield %0 : f32
  }
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  %s = ragged.scratch : memref<4x32xf32>
  // expected-error@+1 {{ragged_pack_panels_c2: expected a region that yields}}
  ragged.pack_panels over [4, 8] into %s : memref<4x32xf32> {
    %0 = arith.constant 1 : i32
    ragged.yield %0 : i32
  }
  ragged.blocks of 96 tile 12 {
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c1: expected a row tile of 1, 2, 4, 6, 8 or 12, but got 5}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 into %s tile 5
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 1 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c1: expected a row tile of 4, with panels of one column, but got 12}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c2: expected `rows`, `k` and `columns` of at least one, but got 0}}
    ragged.product %x (d0) -> (0) rows 1 k 0 columns 8 with %w row 0 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c3: affine_map<(d0) -> (1)> leads out of a row}}
    ragged.product %x (d0) -> (1) rows 1 k 4 columns 8 with %w row 0 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c4: expected packed memory of 4 rows from 1 on, of 8 columns each}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 1 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c4: expected packed memory of 4 rows from 0 on, of 8 columns each}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c5: expected scratch of products of 1 rows of 8 columns}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c6: expected 8 elements from 1 on}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 from %b + 1 into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>, memref<8xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c6: expected `from` with an offset and without `onto`}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 from %b + 0 onto into %s tile 12
        : memref<?x4xf32>, memref<4x8xf32>, memref<?x16xf32>, memref<8xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xi32>
  %w = ragged.param @w panels 32 : memref<4x8xf32>
  %b = ragged.param @b : memref<8xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_product_c7: expected elements of f32, but got}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 8 with %w row 0 into %s tile 12
        : memref<?x4xi32>, memref<4x8xf32>, memref<?x16xf32>
  }
}

// -----

// Lanes are either rows or the iterations of a loop.
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_nest_c6: expected a stage of `ragged.blocks` for the CPU whose loops do not run in vectors}}
    ragged.nest over [4] lanes 0 across_rows {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}

// -----

// What runs once a call has no rows.
ragged.kernel @k {
  %c = ragged.constant dense<[1.0]> : tensor<1xf32> : memref<1xf32>
  %s = ragged.scratch : memref<16xf32>
  // expected-error@+1 {{ragged_nest_c6: expected a stage of `ragged.blocks` for the CPU whose loops do not run in vectors}}
  ragged.nest over [] across_rows {
    %0 = ragged.load %c () -> (0) : memref<1xf32>
    ragged.store %0, %s () -> (0) : memref<16xf32>
  }
}

// -----

ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?xf32>
  ragged.blocks of 96 tile 12 {
    // expected-error@+1 {{ragged_fold_c7: expected a stage of `ragged.blocks` for the CPU whose loops do not run in vectors}}
    ragged.fold over [4] folding [0] into %r () -> (0) lanes 0 across_rows : memref<?xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%sum: f32):
      %a = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
      %next = arith.addf %sum, %a : f32
      ragged.yield %next : f32
    }
  }
}
