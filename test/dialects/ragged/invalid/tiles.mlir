// What tiles of products and stages for a GPU say must be possible: what a person writes wrongly is an error at its place.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c1: expected loops of at least one}}
  ragged.tiles over [0] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `small` to be rows and columns of a thread, terms in shared memory and warps side by side that threads can have, but got 2, 3, 16, 1}}
  ragged.tiles over [28] small [2, 3, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `large`}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2] from 512 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `small`}}
  ragged.tiles over [28] small [2, 2, 8, 4] large [4, 4, 16, 2] from 512 rounded bf16 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c3: expected a thread to have at most 512 sums in `large`, but got 576}}
  ragged.tiles over [28] small [2, 2, 16, 4] large [8, 12, 16, 2] from 512 rounded tf32 {
    %zero = arith.constant 0.0 : f32
    %s:6 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 1, 2, 3, 4, 5] copies [4, 1, 1, 1, 1, 1, 1] from %zero, %zero, %zero, %zero, %zero, %zero : memref<?x32xf32>, memref<32x56xf32>, f32, f32, f32, f32, f32, f32 -> f32, f32, f32, f32, f32, f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c4: expected `from` of at least 1, but got 0}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 0 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c6: expected factors rounded to `tf32` or `bf16`, but got `f32`}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 1 rounded f32 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c6: expected `weights` that are rounded}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 1 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c1: expected `k` and `columns` of at least one, but got 0}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 0 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c2: expected 28 columns from 32 on of 56}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [32] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c2: expected from 1 to 8 gates}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 28] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c3: affine_map<() -> (1)> leads out of a row}}
    %s = ragged.products %x () -> (1) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c4: affine_map<(d0, d1) -> (d0 * 57 + d1)> leads out of a row}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 57 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c5: expected copies of 1 or 4 elements}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c5: expected copies of 4 columns from 2 on to be 16 aligned bytes of each term}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [2] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c5: expected copies of 4 terms to be 16 aligned bytes of each row}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 30 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 64, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c7: expected all sizes of the tile to fill 32 terms to as many, but 16 and 64 do not}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xi32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c8: expected elements of f32, but got 'memref<?x32xi32>'}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xi32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    %a = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    %n = arith.negf %a : f32
    // expected-error@+1 {{ragged_products_c6: expected starts that depend on no sum}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %n : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
    %zero = arith.constant 0.0 : f32
    %a = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [4] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    // expected-error@+1 {{ragged_products_c6: expected starts that depend on no sum}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %a : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_tiles_c1: expected to be in a `gpu.module`}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
  }
  ragged.blocks of 1 tile 1 {
  }
}

// -----

gpu.module @g {
ragged.kernel @k {
  // expected-error@+1 {{ragged_tiles_c5: expected 1 to 8 sums of products, but got 0}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %r = ragged.result : memref<?x28xf32>
  ragged.blocks of 8 tile 1 {
    // expected-error@+1 {{ragged_nest_c3: expected a thread of a GPU to take 1, 2 or 4 neighbours along the last loop, whose length is a multiple of that, but got 3}}
    ragged.nest over [28] by 3 {
      %0 = arith.constant 1.0 : f32
      ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x30xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 8 tile 1 {
    // expected-error@+1 {{ragged_fold_c4: expected a thread of a GPU to fold 1, 2 or 4 neighbours along the last loop}}
    ragged.fold over [4, 30] folding [1] into %r (d0) -> (d0) vectors 4 : memref<?x4xf32> from {
      %0 = arith.constant 0.0 : f32
      ragged.yield %0 : f32
    } by {
    ^bb0(%sum: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 30 + d1) : memref<?x4x30xf32>
      %1 = arith.addf %sum, %0 : f32
      ragged.yield %1 : f32
    }
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4x30xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.blocks of 8 tile 1 {
    // expected-error@+1 {{ragged_fold_c3: expected the lanes of a GPU to fold along a folded loop, but got 0}}
    ragged.fold over [4, 30] folding [1] into %r (d0) -> (d0) lanes 0 : memref<?x4xf32> from {
      %0 = arith.constant 0.0 : f32
      ragged.yield %0 : f32
    } by {
    ^bb0(%sum: f32):
      %0 = ragged.load %x (d0, d1) -> (d0 * 30 + d1) : memref<?x4x30xf32>
      %1 = arith.addf %sum, %0 : f32
      ragged.yield %1 : f32
    }
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %r = ragged.result : memref<?x4xf32>
  // expected-error@+1 {{ragged_scratch_c3: expected what is on the chip to be rows that the stages of one `ragged.blocks` for a GPU touch alone}}
  %s = ragged.scratch on_chip : memref<?x4xf32>
  ragged.blocks of 8 tile 1 {
    ragged.nest over [4] by 4 {
      %0 = arith.constant 1.0 : f32
      ragged.store %0, %s (d0) -> (d0) : memref<?x4xf32>
    }
  }
  ragged.blocks of 8 tile 1 {
    ragged.nest over [4] by 4 {
      %0 = ragged.load %s (d0) -> (d0) : memref<?x4xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
    }
  }
}
}

// -----

ragged.kernel @k {
  // expected-error@+1 {{ragged_scratch_c3}}
  %s = ragged.scratch on_chip : memref<?x4xf32>
  ragged.blocks of 8 tile 1 {
  }
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %w = ragged.param @w panels 32 : memref<4x4xf32>
  %s = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 8 tile 1 {
    // expected-error@+1 {{ragged_blocks_c3: expected stages only}}
    ragged.product %x (d0) -> (0) rows 1 k 4 columns 4 with %w row 0 into %s tile 12 : memref<?x4xf32>, memref<4x4xf32>, memref<?x16xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c7: expected `resident` to be columns of a block, terms in shared memory and how many times, of a tile of f32 with one loop, and perhaps a multiple of 16 bytes, but got 3, 16, 3}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [3, 16, 3] {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c7: expected `resident` to be columns of a block}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [8, 16, 3] {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c7: expected `resident` to be columns of a block}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [4, 16, 3, 8] {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [4, 16, 3] {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_tiles_c7: expected `resident` sums to be of parameters and of rows that are copied by 4, of a multiple of the terms}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [1, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c7: expected a tile that is `clustered` to be `resident`, too}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 clustered [4, 16, 3] {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c7: expected `clustered` to be columns of a block}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [4, 16, 3] clustered [8, 16, 3] {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x128xf32>
  %w = ragged.param @w : memref<32x128xf32>
  // expected-error@+1 {{ragged_tiles_c7: expected `clustered` columns of which 16 blocks have all, but got 32 parts of them}}
  ragged.tiles over [128] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [8, 16, 3] clustered [4, 16, 3] {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 128 + d1) k 32 columns 128 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x128xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x128xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `largest` to be rows and columns of a thread, terms in shared memory and warps side by side that threads can have, warps and how many times as many terms of a tile that is rounded, but got 2, 1, 16, 1, 8, 3}}
  ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 largest [2, 1, 16, 1, 8, 3] from 1024 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `largest`}}
  ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 16, 2] from 512 largest [8, 8, 16, 4, 16, 3] from 1024 rounded bf16 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `largest`}}
  ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 16, 2] from 512 largest [8, 8, 16, 4, 8, 5] from 1024 rounded bf16 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c2: expected `largest`}}
  ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 16, 2] from 512 largest [8, 8, 16, 4] from 1024 rounded bf16 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  // expected-error@+1 {{ragged_tiles_c4: expected `largest` from at least as many rows as `large`, but got 511}}
  ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 16, 2] from 512 largest [8, 8, 16, 4, 8, 3] from 511 rounded bf16 {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x32xf32>
  %r = ragged.result : memref<?x28xf32>
  %w = ragged.param @w : memref<32x56xf32>
  ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 32, 2] from 512 largest [8, 8, 64, 4, 8, 2] from 1024 rounded bf16 {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c7: expected all sizes of the tile to fill 32 terms to as many, but 16 and 64 do not}}
    %s = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0] copies [4, 4] from %zero : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
    ragged.store %zero, %r (d0) -> (d0) : memref<?x28xf32>
  }
}
}
