// What is widened has the same elements and dims, and a length wherever its type has none.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @other_elements(%x: tensor<3xf32>, %n: index) {
  // expected-error@+1 {{cfb_widen_c1: expected the elements of 'tensor<3xf32>', but got 'tensor<?xi32>'}}
  %y = cfb.widen %x(%n) : tensor<3xf32> -> tensor<?xi32>
  return
}

// -----

func.func @other_dims(%x: tensor<3x8xf32>, %n: index) {
  // expected-error@+1 {{cfb_widen_c1: expected the elements of 'tensor<3x8xf32>', but got 'tensor<?x4xf32>'}}
  %y = cfb.widen %x(%n) : tensor<3x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @narrowed(%x: tensor<?xf32>) {
  // expected-error@+1 {{cfb_widen_c1: expected the elements of 'tensor<?xf32>', but got 'tensor<3xf32>'}}
  %y = cfb.widen %x() : tensor<?xf32> -> tensor<3xf32>
  return
}

// -----

func.func @too_few(%x: tensor<3x8xf32>, %n: index) {
  // expected-error@+1 {{cfb_widen_c2: expected 2 lengths, but got 1}}
  %y = cfb.widen %x(%n) : tensor<3x8xf32> -> tensor<?x?xf32>
  return
}
