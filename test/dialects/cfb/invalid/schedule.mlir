// Phases and ghosts count from one, and turns are those of a loop.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @phase() {
  // expected-error@+1 {{cfb_phase_c1: expected a number of at least 1, but got 0}}
  cfb.phase 0
  return
}

// -----

func.func @ghost(%h: !cfb.lazy<tensor<3xf32>>) {
  // expected-error@+1 {{cfb_ghost_c1: expected `levels` of at least 1, but got 0}}
  %0 = cfb.ghost %h {levels = 0} : !cfb.lazy<tensor<3xf32>>
  return
}

// -----

func.func @no_loop() {
  // expected-error@+1 {{cfb_turn_c1: expected to stand in the second region of an `scf.while`}}
  cfb.turn
  return
}

// -----

func.func @condition(%go: i1) {
  scf.while : () -> () {
    // expected-error@+1 {{cfb_turn_c1: expected to stand in the second region of an `scf.while`}}
    cfb.turn
    scf.condition(%go)
  } do {
    scf.yield
  }
  return
}
