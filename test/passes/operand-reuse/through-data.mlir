// A parameter that is put into a constructor, a tuple, an array or a loop, and taken out again, is the same
// parameter, if nothing else is ever put there: products with it are dense.
// RUN: %batch-opt %s --operand-reuse | %FileCheck %s

ml_program.global private @v(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>
ml_program.global private @w(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>
cfb.adt @Layer ["Layer", "None"] [[tensor<4x4xf32>, tensor<4x4xf32>], []]
cfb.adt @Given ["Given"] [[tensor<4x4xf32>]]
cfb.adt @Tree ["Tree"] [[!cfb.array<!cfb.adt<@Given>>]]

// CHECK-LABEL: func.func private @field
func.func private @field(%l: !cfb.adt<@Layer>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = cfb.match %l : !cfb.adt<@Layer> -> (tensor<4xf32>) ({
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    // The first is always @w; the second is not.
    // CHECK: %[[W:[a-z0-9_]+]] = ml_program.global_load_const @w
    // CHECK: cfb.block "field"(%{{[a-z0-9]+}}, %[[W]], %{{[a-z0-9]+}}) {{.*}} attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>, #cfb<reuse row>]}
    %h = cfb.block "field"(%x, %a, %b) : (tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4xf32>) {
    ^bb0(%i: tensor<4xf32>, %j: tensor<4x4xf32>, %k: tensor<4x4xf32>):
      cfb.yield %i : tensor<4xf32>
    }
    cfb.yield %h : tensor<4xf32>
  }, {
    cfb.yield %x : tensor<4xf32>
  })
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func private @element
func.func private @element(%x: tensor<4xf32>, %i: i32) -> tensor<4xf32> {
  %v = ml_program.global_load_const @v : tensor<4x4xf32>
  %w = ml_program.global_load_const @w : tensor<4x4xf32>
  %pair = cfb.array_create %v, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> !cfb.array<tuple<tensor<4x4xf32>, tensor<4x4xf32>>>
  %more = cfb.array_push %pair, (%w, %w) : !cfb.array<tuple<tensor<4x4xf32>, tensor<4x4xf32>>>, (tensor<4x4xf32>, tensor<4x4xf32>)
  %e:2 = cfb.array_get %more[%i] : !cfb.array<tuple<tensor<4x4xf32>, tensor<4x4xf32>>> -> (tensor<4x4xf32>, tensor<4x4xf32>)
  // CHECK: %[[E:[a-z0-9_]+]]:2 = cfb.array_get
  // CHECK: %[[W2:[a-z0-9_]+]] = ml_program.global_load_const @w
  // CHECK: cfb.block "element"(%{{[a-z0-9]+}}, %[[E]]#0, %[[W2]]) {{.*}} attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>, #cfb<reuse shared>]}
  %h = cfb.block "element"(%x, %e#0, %e#1) : (tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>):
    cfb.yield %a : tensor<4xf32>
  }
  return %h : tensor<4xf32>
}

// What comes with the instance may be anything, also where the program makes such values of a parameter.
// CHECK-LABEL: func.func @main
func.func @main(%t: !cfb.adt<@Tree>, %x: tensor<4xf32>, %i: i32, %m: tensor<4x4xf32>) -> tensor<4xf32> {
  %v = ml_program.global_load_const @v : tensor<4x4xf32>
  %w = ml_program.global_load_const @w : tensor<4x4xf32>
  %own = cfb.construct "Given"(%w) : (tensor<4x4xf32>) -> !cfb.adt<@Given>
  %g = cfb.match %own : !cfb.adt<@Given> -> (tensor<4xf32>) ({
  ^bb0(%a: tensor<4x4xf32>):
    // CHECK: cfb.block "given"({{.*}}) {{.*}} attributes {reuse = [#cfb<reuse row>, #cfb<reuse row>]}
    %h = cfb.block "given"(%x, %a) : (tensor<4xf32>, tensor<4x4xf32>) -> (tensor<4xf32>) {
    ^bb0(%b: tensor<4xf32>, %c: tensor<4x4xf32>):
      cfb.yield %b : tensor<4xf32>
    }
    cfb.yield %h : tensor<4xf32>
  })
  %l = cfb.construct "Layer"(%w, %v) : (tensor<4x4xf32>, tensor<4x4xf32>) -> !cfb.adt<@Layer>
  %k = cfb.construct "Layer"(%w, %m) : (tensor<4x4xf32>, tensor<4x4xf32>) -> !cfb.adt<@Layer>
  %p = func.call @field(%l, %g) : (!cfb.adt<@Layer>, tensor<4xf32>) -> tensor<4xf32>
  %q = func.call @field(%k, %p) : (!cfb.adt<@Layer>, tensor<4xf32>) -> tensor<4xf32>
  %r = func.call @element(%q, %i) : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
