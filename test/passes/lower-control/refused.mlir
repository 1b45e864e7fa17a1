// What the pass cannot lower is an error where it stands, and nothing is left half done.
// RUN: %batch-opt %s --lower-control --split-input-file --verify-diagnostics

func.func @main(%p: !cfb.lazy<tensor<f64>>) -> f64
    attributes {cfb.entry, cfb.arguments = ["p"], cfb.argument_types = [tensor<f64>], cfb.result_type = f64} {
  // expected-error @+1 {{not supported yet: a decision on !cfb.lazy<tensor<f64>>}}
  %b = cfb.force %p : !cfb.lazy<tensor<f64>> -> f64
  return %b : f64
}

// -----

func.func @main(%h: !cfb.lazy<tensor<?x4xf32>>) -> !cfb.lazy<tensor<?x4xf32>>
    attributes {cfb.entry, cfb.arguments = ["h"], cfb.argument_types = [tensor<?x4xf32>], cfb.result_type = tensor<?x4xf32>} {
  // expected-error @+1 {{not supported yet: a ghost of several rows}}
  %g = cfb.ghost %h {levels = 1} : !cfb.lazy<tensor<?x4xf32>>
  return %g : !cfb.lazy<tensor<?x4xf32>>
}

// -----

// expected-error @+1 {{not supported yet: a value of type tensor<4xf32> here}}
func.func @main(%h: tensor<4xf32>) -> tensor<4xf32>
    attributes {cfb.entry, cfb.arguments = ["h"], cfb.argument_types = [tensor<4xf32>], cfb.result_type = tensor<4xf32>} {
  return %h : tensor<4xf32>
}

// -----

func.func @main(%go: i1) -> i1
    attributes {cfb.entry, cfb.arguments = ["go"], cfb.argument_types = [i1], cfb.result_type = i1} {
  // expected-error @+1 {{this loop may never end: expected a `cfb.turn` in its body}}
  scf.while : () -> () {
    scf.condition(%go)
  } do {
    scf.yield
  }
  return %go : i1
}

// -----

// expected-error @+1 {{not supported yet: a function of several basic blocks}}
func.func @main(%n: i32) -> i32
    attributes {cfb.entry, cfb.arguments = ["n"], cfb.argument_types = [i32], cfb.result_type = i32} {
  cf.br ^next(%n : i32)
^next(%m: i32):
  return %m : i32
}

// -----

cfb.kernel @double {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  %y = arith.addf %x, %x : tensor<?x4xf32>
  cfb.yield %y : tensor<?x4xf32>
}
func.func @main(%h: !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    attributes {cfb.entry, cfb.arguments = ["h"], cfb.argument_types = [tensor<4xf32>], cfb.result_type = tensor<4xf32>} {
  // expected-error @+1 {{kernel `double` is not lowered yet}}
  %r = cfb.record @double(%h) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
  return %r : !cfb.lazy<tensor<4xf32>>
}

// -----

// expected-error @+1 {{the entry's types do not fit the function}}
func.func @main(%n: i32) -> i32
    attributes {cfb.entry, cfb.arguments = [], cfb.argument_types = [], cfb.result_type = i32} {
  return %n : i32
}

// -----

// expected-error @+1 {{bad `cfb.kernel`: }}
func.func private @cell_0() attributes {cfb.kernel = "{}"}
func.func @main(%n: i32) -> i32
    attributes {cfb.entry, cfb.arguments = ["n"], cfb.argument_types = [i32], cfb.result_type = i32} {
  return %n : i32
}
