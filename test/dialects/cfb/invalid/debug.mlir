// What is shown to the user must be of its type.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @f(%h: tensor<28xf32>) {
  // expected-error@+1 {{cfb_debug_c1: expected values of types ('tensor<28xf32>', 'i32'), but got ('tensor<28xf32>')}}
  cfb.debug "h"(%h) {type = tuple<tensor<28xf32>, i32>} : tensor<28xf32>
  return
}
