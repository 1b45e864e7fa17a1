// What cannot be lowered is refused at its place, with the reason.
// RUN: %batch-opt %s --plan-kernels --split-input-file --verify-diagnostics

cfb.kernel @computed_slice {
^bb0(%rows: index, %x: tensor<?x8xf32>):
  %at = arith.constant 3 : index
  // expected-error @+1 {{not supported yet: a slice whose bounds are computed}}
  %s = tensor.extract_slice %x[0, %at] [%rows, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  cfb.yield %s : tensor<?x4xf32>
}

// -----

cfb.kernel @two_dynamic_dims {
^bb0(%rows: index, %x: tensor<?x?xf32>):
  // expected-error @+1 {{not supported yet: a dynamic dim besides the batch dim}}
  cfb.yield %x : tensor<?x?xf32>
}

// -----

cfb.kernel @wide_elements {
^bb0(%rows: index, %x: tensor<?x4xf64>):
  // expected-error @+1 {{not supported yet: elements of type `f64` in a kernel}}
  cfb.yield %x : tensor<?x4xf64>
}

// -----

cfb.kernel @rows_together {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @+1 {{a kernel may not fold its rows together}}
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x4xf32>) outs(%e : tensor<4xf32>) dimensions = [0]
  cfb.yield %x : tensor<?x4xf32>
}
