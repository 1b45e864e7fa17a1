// A fork has at least two strands, which take nothing and hand over its results in order.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @one() {
  // expected-error@+1 {{cfb_fork_c1: expected at least two strands}}
  cfb.fork -> () ({
    cfb.join
  })
  return
}

// -----

func.func @argument(%a: i32) {
  // expected-error@+1 {{cfb_fork_c2: expected a strand without arguments that ends in `cfb.join`}}
  "cfb.fork"() ({
  ^bb0(%x: i32):
    "cfb.join"() : () -> ()
  }, {
    "cfb.join"() : () -> ()
  }) : () -> ()
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
