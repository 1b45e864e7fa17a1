// What runs side by side needs nothing of each other: what a person puts together wrongly is an error at its place.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  // expected-error@+1 {{ragged_wave_c1: expected two launches or more, for a GPU}}
  ragged.wave {
    ragged.blocks of 96 tile 1 {
      ragged.nest over [4] by 1 {
        %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
        ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
      }
    }
  }
}
}

// -----

// Stages that run once are one launch.
gpu.module @g {
ragged.kernel @k {
  %b = ragged.param @b : memref<4xf32>
  %s = ragged.scratch : memref<4xf32>
  %t = ragged.scratch : memref<4xf32>
  // expected-error@+1 {{ragged_wave_c1: expected two launches or more, for a GPU}}
  ragged.wave {
    ragged.nest over [4] by 1 {
      %0 = ragged.load %b (d0) -> (d0) : memref<4xf32>
      ragged.store %0, %s (d0) -> (d0) : memref<4xf32>
    }
    ragged.nest over [4] by 1 {
      %0 = ragged.load %b (d0) -> (d0) : memref<4xf32>
      ragged.store %0, %t (d0) -> (d0) : memref<4xf32>
    }
  }
}
}

// -----

// On the CPU the stages of a call are one function.
ragged.kernel @k attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  %n = ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?xf32>
  %r = ragged.result of [@n] : memref<?x?xf32>
  %q = ragged.result of [@n] : memref<?x?xf32>
  ragged.calls {
    // expected-error@+1 {{ragged_wave_c1: expected two launches or more, for a GPU}}
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

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  %s = ragged.scratch : memref<?x4xf32>
  ragged.wave {
    ragged.blocks of 96 tile 1 {
      ragged.nest over [4] by 1 {
        %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
        ragged.store %0, %s (d0) -> (d0) : memref<?x4xf32>
      }
    }
    // expected-error@+1 {{ragged_wave_c2: it touches memory that another launch of the wave writes}}
    ragged.blocks of 96 tile 1 {
      ragged.nest over [4] by 1 {
        %0 = ragged.load %s (d0) -> (d0) : memref<?x4xf32>
        ragged.store %0, %r (d0) -> (d0) : memref<?x4xf32>
      }
    }
  }
}
}

// -----

gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  ragged.wave {
    // expected-error@+1 {{ragged_wave_c1: expected launches only}}
    %0 = arith.constant 0.0 : f32
    ragged.blocks of 96 tile 1 {
      ragged.nest over [4] by 1 {
        %1 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
        ragged.store %1, %r (d0) -> (d0) : memref<?x4xf32>
      }
    }
  }
}
}

// -----

// What runs once touches no rows, in a wave neither.
gpu.module @g {
ragged.kernel @k {
  %x = ragged.operand row : memref<?x4xf32>
  %r = ragged.result : memref<?x4xf32>
  %s = ragged.scratch : memref<4xf32>
  ragged.wave {
    // expected-error@+1 {{ragged_kernel_c2: expected what runs once a call to touch what all rows share only}}
    ragged.nest over [4] by 1 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x4xf32>
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
}
