// A dim of a kernel over calls whose length is none of the kernel's is refused where it stands.
// RUN: %batch-opt %s --batch-blocks --verify-diagnostics

func.func @main(%n: index, %x: tensor<?x4xf32>) -> tensor<f32> {
  // expected-error @+1 {{not supported yet: a length that no operand of the kernel has}}
  %r = cfb.block "f"(%n, %x) : (index, tensor<?x4xf32>) -> tensor<f32>
      attributes {leading = [[@dim.0]], lengths = [@dim.0], rows = [], unit = #cfb<unit calls>} {
  ^bb0(%l: index, %y: tensor<?x4xf32>):
    %zero = arith.constant 0.0 : f32
    %c = tensor.collapse_shape %y [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
    %e = tensor.empty() : tensor<f32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %s = linalg.reduce { arith.addf } ins(%c : tensor<?xf32>) outs(%z : tensor<f32>) dimensions = [0]
    cfb.yield %s : tensor<f32>
  }
  return %r : tensor<f32>
}
