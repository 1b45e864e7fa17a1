// A record is a row of the kernel it names.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @undeclared() {
  // expected-error@+1 {{cfb_record_c1: @k is not a kernel}}
  cfb.record @k() : () -> ()
  return
}

// -----

func.func private @k()
func.func @of_a_function() {
  // expected-error@+1 {{cfb_record_c1: @k is not a kernel}}
  cfb.record @k() : () -> ()
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
func.func @operand_count() {
  // expected-error@+1 {{cfb_record_c2: expected 1 operands, but got 0}}
  %0 = cfb.record @k() : () -> !cfb.lazy<tensor<3xf32>>
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
func.func @operand_type(%x: !cfb.lazy<tensor<4xf32>>) {
  // expected-error@+1 {{cfb_record_c3: expected a row of 'tensor<?x3xf32>', but got '!cfb.lazy<tensor<4xf32>>'}}
  %0 = cfb.record @k(%x) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<3xf32>>
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
func.func @scalar_for_a_tensor(%x: f32) {
  // expected-error@+1 {{cfb_record_c3: expected a row of 'tensor<?x3xf32>', but got 'f32'}}
  %0 = cfb.record @k(%x) : (f32) -> !cfb.lazy<tensor<3xf32>>
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
func.func @results(%x: !cfb.lazy<tensor<3xf32>>) {
  // expected-error@+1 {{cfb_record_c4: expected rows of ('tensor<?x3xf32>') as results, but got ('!cfb.lazy<tensor<f32>>')}}
  %0 = cfb.record @k(%x) : (!cfb.lazy<tensor<3xf32>>) -> !cfb.lazy<tensor<f32>>
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
func.func @result_count(%x: !cfb.lazy<tensor<3xf32>>) {
  // expected-error@+1 {{cfb_record_c4: expected rows of ('tensor<?x3xf32>') as results, but got ()}}
  cfb.record @k(%x) : (!cfb.lazy<tensor<3xf32>>) -> ()
  return
}

// -----

func.func private @k() attributes {cfb.kernel = "{}"}
func.func @operand_kind(%x: tensor<3xf32>) {
  // expected-error@+1 {{cfb_record_c5: expected a lazy handle, a scalar, a length or an array of lazy handles, but got 'tensor<3xf32>'}}
  cfb.record @k(%x) : (tensor<3xf32>) -> ()
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: !cfb.rows<tensor<3xf32>>, %y: tensor<?x3xf32>):
  cfb.yield %y : tensor<?x3xf32>
}
func.func @list_type(%x: !cfb.array<!cfb.lazy<tensor<4xf32>>>, %y: !cfb.lazy<tensor<3xf32>>) {
  // expected-error@+1 {{cfb_record_c3: expected a row of '!cfb.rows<tensor<3xf32>>', but got '!cfb.array<!cfb.lazy<tensor<4xf32>>>'}}
  %0 = cfb.record @k(%x, %y) : (!cfb.array<!cfb.lazy<tensor<4xf32>>>, !cfb.lazy<tensor<3xf32>>) -> !cfb.lazy<tensor<3xf32>>
  return
}

// -----

cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  cfb.yield %x : tensor<?x3xf32>
}
func.func @list_for_a_row(%x: !cfb.array<!cfb.lazy<tensor<3xf32>>>) {
  // expected-error@+1 {{cfb_record_c3: expected a row of 'tensor<?x3xf32>', but got '!cfb.array<!cfb.lazy<tensor<3xf32>>>'}}
  %0 = cfb.record @k(%x) : (!cfb.array<!cfb.lazy<tensor<3xf32>>>) -> !cfb.lazy<tensor<3xf32>>
  return
}
