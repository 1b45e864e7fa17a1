// Where something else than an instance's structure decides, nothing is written down: a tensor, a random number, and
// whether two rows that numbers choose are the same. What the result has is more than a row's number.
// RUN: %batch-opt %s --split-input-file --structure-only | %FileCheck %s

// CHECK-LABEL: @forced
// CHECK-NOT: cfb.chooses_rows
func.func @forced(%w: i32, %x: !cfb.lazy<tensor<i1>>) -> !cfb.lazy<tensor<i1>>
    attributes {cfb.argument_types = [i32, tensor<i1>], cfb.arguments = ["w", "x"], cfb.entry,
                cfb.result_type = tensor<i1>} {
  %b = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
  return %x : !cfb.lazy<tensor<i1>>
}

// -----

// CHECK-LABEL: @random
// CHECK-NOT: cfb.chooses_rows
func.func @random(%w: i32) -> i32
    attributes {cfb.argument_types = [i32], cfb.arguments = ["w"], cfb.entry, cfb.result_type = i32} {
  %low, %high = cfb.instance_key
  return %low : i32
}

// -----

ml_program.global private @emb(#ml_program.extern : tensor<7x4xf32>) : tensor<7x4xf32>
// CHECK-LABEL: @same
// CHECK-NOT: cfb.chooses_rows
func.func @same(%v: i32, %w: i32) -> i1
    attributes {cfb.argument_types = [i32, i32], cfb.arguments = ["v", "w"], cfb.entry, cfb.result_type = i1} {
  %a = cfb.param_row @emb[%v] : !cfb.lazy<tensor<4xf32>>
  %b = cfb.param_row @emb[%w] : !cfb.lazy<tensor<4xf32>>
  %is = cfb.same %a, %b : !cfb.lazy<tensor<4xf32>>
  return %is : i1
}

// -----

ml_program.global private @emb(#ml_program.extern : tensor<7x4xf32>) : tensor<7x4xf32>
// CHECK: cfb.adt @Word ["Word"] {{\[\[i32\]\]}} {cfb.chooses_rows = {{\[}}[]]}
cfb.adt @Word ["Word"] [[i32]]
// CHECK-LABEL: @shown
// CHECK-SAME: cfb.chooses_rows = []
func.func @shown(%w: !cfb.adt<@Word>) -> !cfb.adt<@Word>
    attributes {cfb.argument_types = [!cfb.adt<@Word>], cfb.arguments = ["w"], cfb.entry,
                cfb.result_type = !cfb.adt<@Word>} {
  return %w : !cfb.adt<@Word>
}
