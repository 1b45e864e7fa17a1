// Dims are named by the lengths that a block or kernel takes, and an extent is made of these.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @length_is_no_index(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{cfb_block_c6: expected the first 1 operands, and no others, to be lengths}}
  cfb.block "f"(%x) : (tensor<?x8xf32>) -> ()
      attributes {leading = [], lengths = [@n], rows = [], unit = #cfb<unit rows>} {
  ^bb0(%a: tensor<?x8xf32>):
    cfb.yield
  }
  return
}

// -----

func.func @without_a_list(%n: index, %x: tensor<?x8xf32>) {
  // expected-error@+1 {{cfb_block_c7: expected `unit`, `rows`, and `leading` with a list}}
  cfb.block "f"(%n, %x) : (index, tensor<?x8xf32>) -> ()
      attributes {leading = [], lengths = [@n], rows = [], unit = #cfb<unit rows>} {
  ^bb0(%l: index, %a: tensor<?x8xf32>):
    cfb.yield
  }
  return
}

// -----

func.func @another_dim(%n: index, %x: tensor<?x8xf32>) {
  // expected-error@+1 {{cfb_block_c8: expected dims of `lengths`}}
  cfb.block "f"(%n, %x) : (index, tensor<?x8xf32>) -> ()
      attributes {leading = [[@m]], lengths = [@n], rows = [], unit = #cfb<unit rows>} {
  ^bb0(%l: index, %a: tensor<?x8xf32>):
    cfb.yield
  }
  return
}

// -----

// expected-error@+1 {{cfb_kernel_c4: expected the first 1 arguments after the number of rows, and no others}}
cfb.kernel @k attributes {lengths = [@n], rows = [], unit = #cfb<unit calls>} {
^bb0(%rows: index, %x: tensor<?x8xf32>):
  cfb.yield
}

// -----

// expected-error@+1 {{attribute 'unit' failed to satisfy constraint: what a kernel is about: rows or calls}}
cfb.kernel @k attributes {lengths = [@n], rows = [], unit = "columns"} {
^bb0(%rows: index, %n: tensor<?xindex>):
  cfb.yield
}

// -----

// expected-error@+1 {{cfb_kernel_c5: expected `unit`, as there are `lengths`}}
cfb.kernel @k attributes {lengths = [@n], rows = [@n]} {
^bb0(%rows: index, %n: tensor<?xindex>):
  cfb.yield
}

// -----

// expected-error@+1 {{cfb_kernel_c5: `unit`, `rows` and `takes` go with `lengths`}}
cfb.kernel @k attributes {takes = [#cfb<takes row>]} {
^bb0(%rows: index, %x: tensor<?x8xf32>):
  cfb.yield
}

// -----

// expected-error@+1 {{cfb_kernel_c6: expected dims of `lengths` and numbers of at least one}}
cfb.kernel @k attributes {lengths = [@n], rows = [0], unit = #cfb<unit calls>} {
^bb0(%rows: index, %n: tensor<?xindex>):
  cfb.yield
}

// -----

// expected-error@+1 {{attribute 'takes' failed to satisfy constraint: how operands are taken: ragged, row, scalar, list or stacked}}
cfb.kernel @k attributes {lengths = [@n], rows = [@n], takes = ["whole"], unit = #cfb<unit rows>} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>):
  cfb.yield
}

// -----

// expected-error@+1 {{cfb_kernel_c7: expected `takes` to say of each argument after the lengths}}
cfb.kernel @k attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>], unit = #cfb<unit rows>} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>, %y: tensor<?x8xf32>):
  cfb.yield
}

// -----

cfb.kernel @k attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>], unit = #cfb<unit rows>} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>):
  cfb.yield
}
func.func @one_row(%n: index, %x: !cfb.lazy<tensor<8xf32>>) {
  // expected-error@+1 {{cfb_record_c3: expected a row of 'tensor<?x8xf32>', but got '!cfb.lazy<tensor<8xf32>>'}}
  cfb.record @k(%n, %x) : (index, !cfb.lazy<tensor<8xf32>>) -> ()
  return
}

// -----

func.func @known_dim(%x: !cfb.lazy<tensor<?x8xf32>>) {
  // expected-error@+1 {{cfb_dim_c1: expected dim 1 of 'tensor<?x8xf32>' to be dynamic}}
  %n = cfb.dim %x, 1 : !cfb.lazy<tensor<?x8xf32>>
  return
}

// -----

func.func @row_of_known(%x: !cfb.lazy<tensor<4x8xf32>>, %i: i32) {
  // expected-error@+1 {{cfb_row_c1: expected the first dim of 'tensor<4x8xf32>' to be dynamic}}
  %r = cfb.row %x[%i] : !cfb.lazy<tensor<4x8xf32>> -> !cfb.lazy<tensor<8xf32>>
  return
}

// -----

func.func @row_of_another_type(%x: !cfb.lazy<tensor<?x8xf32>>, %i: i32) {
  // expected-error@+1 {{cfb_row_c2: expected a handle of 'tensor<8xf32>', but got '!cfb.lazy<tensor<7xf32>>'}}
  %r = cfb.row %x[%i] : !cfb.lazy<tensor<?x8xf32>> -> !cfb.lazy<tensor<7xf32>>
  return
}
