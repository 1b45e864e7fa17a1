// A fork has at least two strands, which hand over its results in order and take those of earlier ones.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @one() {
  // expected-error@+1 {{cfb_fork_c1: expected at least two strands}}
  cfb.fork -> () ({
    cfb.join
  })
  return
}

// -----

func.func @end(%a: i32) {
  // expected-error@+1 {{cfb_fork_c2: expected a strand that ends in `cfb.join`}}
  "cfb.fork"() ({
    "cfb.join"() : () -> ()
  }, {
    %0 = "arith.constant"() {value = 1 : i32} : () -> i32
  }) : () -> ()
  return
}

// -----

func.func @argument(%a: i32) {
  // expected-error@+1 {{cfb_fork_c4: expected `needs` to name an earlier strand's result of type 'i32' for argument 0 of strand 0}}
  %0 = "cfb.fork"() <{needs = array<i64: 0>}> ({
  ^bb0(%x: i32):
    "cfb.join"(%x) : (i32) -> ()
  }, {
    "cfb.join"() : () -> ()
  }) : () -> i32
  return
}

// -----

func.func @other_type(%a: i32) {
  // expected-error@+1 {{cfb_fork_c4: expected `needs` to name an earlier strand's result of type 'f32' for argument 0 of strand 1}}
  %0 = "cfb.fork"() <{needs = array<i64: 0>}> ({
    "cfb.join"(%a) : (i32) -> ()
  }, {
  ^bb0(%x: f32):
    "cfb.join"() : () -> ()
  }) : () -> i32
  return
}

// -----

func.func @too_many(%a: i32) {
  // expected-error@+1 {{cfb_fork_c4: expected as many results in `needs` as strands have arguments, 0, but got 1}}
  %0 = "cfb.fork"() <{needs = array<i64: 0>}> ({
    "cfb.join"(%a) : (i32) -> ()
  }, {
    "cfb.join"() : () -> ()
  }) : () -> i32
  return
}

// -----

func.func @types(%a: i32, %b: f32) {
  // expected-error@+1 {{cfb_fork_c3: expected results of types ('i32', 'f32'), but got ('f32', 'i32')}}
  %0:2 = "cfb.fork"() ({
    "cfb.join"(%a) : (i32) -> ()
  }, {
    "cfb.join"(%b) : (f32) -> ()
  }) : () -> (f32, i32)
  return
}

// -----

func.func @elsewhere(%a: i32) {
  // expected-error@+1 {{'cfb.join' op expects parent op 'cfb.fork'}}
  cfb.join %a : i32
}
