// Attributes that are one of some words, and parts of calls, print as they are read.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s

// CHECK: module attributes {cfb.gradients = #cfb<gradients all>, cfb.granularity = #cfb<granularity function>, cfb.precision = #cfb<precision tf32>, cfb.rounding = #cfb<rounding separate>}
module attributes {cfb.gradients = #cfb<gradients all>, cfb.granularity = #cfb<granularity function>, cfb.precision = #cfb<precision tf32>, cfb.rounding = #cfb<rounding separate>} {
  // CHECK: @refused() attributes {cfb.gradient = {refused = "no derivative"}}
  func.func private @refused() attributes {cfb.gradient = {refused = "no derivative"}}
  // CHECK: @add() attributes {cfb.gradient_helper = #cfb<gradient_helper add_runs>}
  func.func private @add() attributes {cfb.gradient_helper = #cfb<gradient_helper add_runs>}
  // CHECK: arguments = [#cfb.part<operand 0>, #cfb.part<result 1>, #cfb.part<cotangent 1>], results = [#cfb.part<operand 0>, #cfb.part<site>]
  // CHECK-SAME: sites = [{left = #cfb.part<argument 0>, parameter = @w, right = #cfb.part<result 1>}]
  func.func private @gradient() attributes {cfb.gradient = {
    arguments = [#cfb.part<operand 0>, #cfb.part<result 1>, #cfb.part<cotangent 1>],
    results = [#cfb.part<operand 0>, #cfb.part<site>],
    sites = [{left = #cfb.part<argument 0>, parameter = @w, right = #cfb.part<result 1>}]}}
}
