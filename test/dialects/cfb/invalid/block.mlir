// What a block takes, gives and says of its operands.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @operand(%a: !cfb.array<f32>) {
  // expected-error@+1 {{cfb_block_c1: expected a tensor, a scalar or an array of tensors, but got '!cfb.array<f32>'}}
  cfb.block "b"(%a) : (!cfb.array<f32>) -> () {
  ^bb0(%x: !cfb.array<f32>):
    cfb.yield
  }
  return
}

// -----

func.func @arguments(%a: tensor<3xf32>) {
  // expected-error@+1 {{cfb_block_c2: expected region arguments of types ('tensor<3xf32>'), but got ('tensor<4xf32>')}}
  cfb.block "b"(%a) : (tensor<3xf32>) -> () {
  ^bb0(%x: tensor<4xf32>):
    cfb.yield
  }
  return
}

// -----

func.func @yielded_types(%a: tensor<3xf32>) {
  %0 = cfb.block "b"(%a) : (tensor<3xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<3xf32>):
    // expected-error@+1 {{cfb_block_c3: expected values of types ('tensor<4xf32>'), but got ('tensor<3xf32>')}}
    cfb.yield %x : tensor<3xf32>
  }
  return
}

// -----

func.func @result(%s: f32) {
  // expected-error@+1 {{cfb_block_c4: expected a tensor as a result, but got 'f32'}}
  %0 = cfb.block "b"(%s) : (f32) -> f32 {
  ^bb0(%x: f32):
    cfb.yield %x : f32
  }
  return
}

// -----

func.func @reuse_count(%a: tensor<3xf32>) {
  // expected-error@+1 {{cfb_block_c5: expected 1 entries in `reuse`, one for each operand, but got 2}}
  cfb.block "b"(%a) : (tensor<3xf32>) -> () attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]} {
  ^bb0(%x: tensor<3xf32>):
    cfb.yield
  }
  return
}

// -----

func.func @reuse_kind(%a: tensor<3xf32>) {
  // expected-error@+1 {{attribute 'reuse' failed to satisfy constraint: who has operands, a list of row and shared}}
  cfb.block "b"(%a) : (tensor<3xf32>) -> () attributes {reuse = ["column"]} {
  ^bb0(%x: tensor<3xf32>):
    cfb.yield
  }
  return
}

// -----

func.func @isolated(%a: tensor<3xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  %0 = cfb.block "b"() : () -> tensor<3xf32> {
    // expected-error@+1 {{'cfb.yield' op using value defined outside the region}}
    cfb.yield %a : tensor<3xf32>
  }
  return
}
