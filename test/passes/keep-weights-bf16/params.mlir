// Every parameter in panels is kept in bf16, also one of a kernel that computes a weight, and a remark counts what stays
// packed. What is read as it is stays so, and so does what is for a GPU.
// RUN: %batch-opt %s --keep-weights-bf16 --verify-diagnostics
// RUN: %batch-opt %s --keep-weights-bf16 | %FileCheck %s
// RUN: %batch-opt %s --keep-weights-bf16 | %batch-opt | %FileCheck %s

ml_program.global private @w(#ml_program.extern) : tensor<28x40xf32>
ml_program.global private @v(#ml_program.extern) : tensor<28x1xf32>
ml_program.global private @b(#ml_program.extern) : tensor<40xf32>
ml_program.global private @h(#ml_program.extern) : tensor<40xf32> {cfb.computed = @compute_0}

// CHECK-LABEL: ragged.kernel @compute_0
// CHECK: ragged.param @w panels 32 bf16 : memref<28x40xf32>
ragged.kernel @compute_0 {
  %r = ragged.result : memref<?x40xf32>
  %w = ragged.param @w panels 32 : memref<28x40xf32>
  ragged.blocks of 96 tile 1 {
  }
}

// CHECK-LABEL: ragged.kernel @cell
// expected-remark@+1 {{the packed weights of products are kept in bf16, in 3640 bytes instead of 7280}}
ragged.kernel @cell {
  // CHECK: ragged.param @w panels 32 bf16 : memref<28x40xf32>
  // CHECK: ragged.param @v panels 1 bf16 : memref<28x1xf32>
  // CHECK: ragged.param @b : memref<40xf32>
  %r = ragged.result : memref<?x40xf32>
  %w = ragged.param @w panels 32 : memref<28x40xf32>
  %v = ragged.param @v panels 1 : memref<28x1xf32>
  %b = ragged.param @b : memref<40xf32>
  ragged.blocks of 96 tile 1 {
  }
}

// CHECK-LABEL: ragged.kernel @again
// CHECK: ragged.param @w panels 32 bf16 : memref<28x40xf32>
ragged.kernel @again {
  %r = ragged.result : memref<?x40xf32>
  %w = ragged.param @w panels 32 : memref<28x40xf32>
  ragged.blocks of 96 tile 1 {
  }
}

gpu.module @cohort_gpu {
  // CHECK: ragged.param @w : memref<28x40xf32>
  ragged.kernel @cell {
    %r = ragged.result : memref<?x40xf32>
    %w = ragged.param @w : memref<28x40xf32>
    ragged.blocks of 96 tile 1 {
    }
  }
}
