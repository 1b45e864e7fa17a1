// Rows that are kept in bf16, and tiles of warpgroups, that the verifier refuses.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x60xf32>
  // expected-error@+1 {{ragged_scratch_c4: expected what is kept in bf16 to be rows of f32 of a multiple of 8 elements in the memory of a GPU, but got}}
  %h = ragged.scratch bf16 : memref<?x60xf32>
  ragged.blocks of 2 tile 1 {
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  // expected-error@+1 {{ragged_scratch_c4: expected only products to read what is kept in bf16, and only stores to write it}}
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      // expected-note@+1 {{touched here}}
      %0 = ragged.load %h (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x64xf32>
    }
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 2 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      // expected-error@+1 {{ragged_store_c4: expected a nest `by 4` or a tile that is rounded to store 4 aligned neighbours at once to what is kept in bf16}}
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c5: expected copies of 1 or 4 elements, of the left side and of each gate, and of 8 of a left side in bf16}}
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded tf32 weights {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c5: expected products of rows in bf16 to be rounded to it}}
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    // expected-error@+1 {{ragged_products_c5: expected all left sides of a tile to be kept in bf16, or none}}
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    %t = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %s : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %t, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` to be 1 to 3, a multiple of 8 columns of each sum, 256 of all at most, and 2 to 4 times the terms, or 4 of 128 columns with `held` weights, but got 4, 64, 4}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [4, 64, 4] from 100 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` to be 1 to 3, a multiple of 8 columns of each sum, 256 of all at most, and 2 to 4 times the terms, or 4 of 128 columns with `held` weights, but got 1, 60, 4}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [1, 60, 4] from 100 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` of a tile of rows and weights in bf16, of a multiple of 64 terms}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [1, 64, 4] from 100 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [4, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` of a tile of rows and weights in bf16, of a multiple of 64 terms}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [1, 64, 4] from 100 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 48 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` and the rows that they are from together, at least 1}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [1, 64, 4] from 0 rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` to be 1 to 3, a multiple of 8 columns of each sum, 256 of all at most, and 2 to 4 times the terms, or 4 of 128 columns with `held` weights, but got 3, 64, 4}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [3, 64, 4] from 100 held rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected `warpgroups` to be 1 to 3, a multiple of 8 columns of each sum, 256 of all at most, and 2 to 4 times the terms, or 4 of 128 columns with `held` weights, but got 4, 256, 4}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 warpgroups [4, 256, 4] from 100 held rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x64xf32>
  %r = ragged.result : memref<?x64xf32>
  %w = ragged.param @w : memref<64x64xf32>
  %h = ragged.scratch bf16 : memref<?x64xf32>
  ragged.blocks of 2 tile 1 {
    ragged.nest over [64] by 4 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x64xf32>
      ragged.store %0, %h (d0) -> (d0) : memref<?x64xf32>
    }
  }
  // expected-error@+1 {{ragged_tiles_c8: expected weights that are `held` to be of `warpgroups`}}
  ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 held rounded bf16 weights {
    %zero = arith.constant 0.0 : f32
    %s = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 64 + d1) k 64 columns 64 gates [0] copies [8, 4] from %zero : memref<?x64xf32>, memref<64x64xf32>, f32 -> f32
    ragged.store %s, %r (d0) -> (d0) : memref<?x64xf32>
  }
}
}
