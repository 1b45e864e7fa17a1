// A view has the rows that its operand has.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @other_rows(%x: tensor<?x8xf32>, %n: index) {
  // expected-error@+1 {{cfb_view_c1: expected the rows of 'tensor<?x8xf32>', but got 'tensor<?x4xf32>'}}
  %y = cfb.view %x(%n) : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @no_lengths(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{cfb_view_c1: expected the rows of 'tensor<?x8xf32>', but got 'tensor<3x8xf32>'}}
  %y = cfb.view %x() : tensor<?x8xf32> -> tensor<3x8xf32>
  return
}

// -----

func.func @handle_of_a_value(%x: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{cfb_view_c1}}
  %y = cfb.view %x(%n) : tensor<?xf32> -> !cfb.lazy<tensor<?xf32>>
  return
}

// -----

func.func @too_few(%x: tensor<?x8xf32>, %n: index) {
  // expected-error@+1 {{cfb_view_c2: expected 2 lengths, but got 1}}
  %y = cfb.view %x(%n) : tensor<?x8xf32> -> tensor<?x?x8xf32>
  return
}

// -----

func.func @exact(%x: tensor<?x8xf32>, %n: index, %m: index) {
  // expected-error@+1 {{cfb_view_c3: expected the dims of 'tensor<?x8xf32>', but got 'tensor<?x?x8xf32>'}}
  %y = cfb.view exact %x(%n, %m) : tensor<?x8xf32> -> tensor<?x?x8xf32>
  return
}
