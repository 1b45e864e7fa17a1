// An operation that the host's form does not know is refused where it stands, not left behind.
// RUN: %batch-opt %s --lower-gpu-to-host --split-input-file --verify-diagnostics

gpu.module @cohort_gpu {
  gpu.func @k(%value: i32) kernel {
    // expected-error @below {{not supported yet on the host: `gpu.all_reduce`}}
    %sum = gpu.all_reduce add %value uniform {} : (i32) -> i32
    gpu.return
  }
}

// -----

gpu.module @cohort_gpu {
  gpu.func @k(%value: i32) kernel {
    // expected-error @below {{not supported yet on the host: `nvvm.redux.sync`}}
    %sum = nvvm.redux.sync add %value, %value : i32 -> i32
    gpu.return
  }
}

// -----

gpu.module @cohort_gpu {
  gpu.func @k(%value: f32, %offset: i32, %width: i32) kernel {
    // expected-error @below {{not supported yet on the host: this shuffle}}
    %other, %is_there = gpu.shuffle up %value, %offset, %width : f32
    gpu.return
  }
}
