// What has no rule is refused where it stands.
// RUN: %batch-opt %s --batch-blocks --split-input-file --verify-diagnostics

func.func @no_rule(%x: tensor<4xf32>) -> tensor<6xf32> {
  %r = cfb.block "f"(%x) : (tensor<4xf32>) -> (tensor<6xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%i: tensor<4xf32>):
    %c = arith.constant 0.0 : f32
    // expected-error @+1 {{not supported yet: no batching rule for `tensor.pad`}}
    %p = tensor.pad %i low[1] high[1] {
    ^bb1(%k: index):
      tensor.yield %c : f32
    } : tensor<4xf32> to tensor<6xf32>
    cfb.yield %p : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}

// -----

func.func @computed_table(%x: tensor<4x2xf32>, %i: i32) -> tensor<2xf32> {
  // expected-error @+1 {{not supported yet: a row of a tensor that is not a parameter}}
  %r = cfb.lookup %x[%i] : tensor<4x2xf32> -> tensor<2xf32>
  return %r : tensor<2xf32>
}
