//! MLIR's own passes over the dialect: its traits and interfaces let them do their work.

use cohort_dialects::new_context;
use melior::{ir::Module, pass::PassManager, utility::parse_pass_pipeline};

const TREE: &str = r#"cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]"#;

fn after(passes: &str, source: &str) -> String {
    after_passes(passes, &format!("{TREE}\n{source}"))
}

/// The module after the passes, as text.
pub fn after_passes(passes: &str, source: &str) -> String {
    let context = new_context();
    let mut module = Module::parse(&context, source).expect("parses");
    let manager = PassManager::new(&context);
    parse_pass_pipeline(
        manager.as_operation_pass_manager(),
        &format!("builtin.module({passes})"),
    )
    .expect("a pipeline");
    manager.run(&mut module).expect("runs");
    module.as_operation().to_string()
}

pub fn count(text: &str, needle: &str) -> usize {
    text.matches(needle).count()
}

#[test]
fn equal_matches_are_merged() {
    let source = "func.func @f(%t: !cfb.adt<@Tree>) -> (i32, i32) {
      %a = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
      ^bb0(%w: i32):
        cfb.yield %w : i32
      }, {
      ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
        %z = arith.constant 0 : i32
        cfb.yield %z : i32
      })
      %b = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
      ^bb0(%w: i32):
        cfb.yield %w : i32
      }, {
      ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
        %z = arith.constant 0 : i32
        cfb.yield %z : i32
      })
      return %a, %b : i32, i32
    }";
    assert_eq!(count(&after("cse", source), "cfb.match"), 1);
}

#[test]
fn equal_records_and_failing_reads_are_merged() {
    let source = "
    ml_program.global private @emb(#ml_program.extern<tensor<4x3xf32>>) : tensor<4x3xf32>
    cfb.kernel @k {
    ^bb0(%rows: index, %x: tensor<?x3xf32>):
      cfb.yield %x : tensor<?x3xf32>
    }
    func.func @f(%i: i32) -> (!cfb.lazy<tensor<3xf32>>, !cfb.lazy<tensor<3xf32>>) {
      %a = cfb.param_row @emb[%i] : !cfb.lazy<tensor<3xf32>>
      %b = cfb.param_row @emb[%i] : !cfb.lazy<tensor<3xf32>>
      %c = cfb.record @k(%a) : (!cfb.lazy<tensor<3xf32>>) -> !cfb.lazy<tensor<3xf32>>
      %d = cfb.record @k(%b) : (!cfb.lazy<tensor<3xf32>>) -> !cfb.lazy<tensor<3xf32>>
      return %c, %d : !cfb.lazy<tensor<3xf32>>, !cfb.lazy<tensor<3xf32>>
    }";
    let text = after("cse", source);
    assert_eq!(
        (count(&text, "cfb.param_row"), count(&text, "cfb.record")),
        (1, 1)
    );
}

#[test]
fn unused_operations_go_away() {
    let source = "func.func @f(%t: !cfb.adt<@Tree>, %a: !cfb.array<f32>, %x: f32, %i: i32) {
      %n = cfb.construct \"Leaf\"(%i) : (i32) -> !cfb.adt<@Tree>
      %m = cfb.map %a : (!cfb.array<f32>) -> !cfb.array<f32> {
      ^bb0(%e: f32):
        cfb.yield %e : f32
      }
      %s = cfb.fold %m init(%x) : (!cfb.array<f32>, f32) -> f32 {
      ^bb0(%acc: f32, %e: f32):
        %r = arith.addf %acc, %e : f32
        cfb.yield %r : f32
      }
      %g = cfb.array_get %a[%i] : !cfb.array<f32> -> (f32)
      %b = cfb.block \"b\"(%x) : (f32) -> tensor<f32> {
      ^bb0(%e: f32):
        %c = tensor.from_elements %e : tensor<f32>
        cfb.yield %c : tensor<f32>
      }
      return
    }";
    let text = after("canonicalize", source);
    assert_eq!(count(&text, " = cfb."), 0, "{text}");
}

#[test]
fn a_phase_stays() {
    let text = after(
        "canonicalize,cse",
        "func.func @f() {\n cfb.phase 1\n return\n }",
    );
    assert_eq!(count(&text, "cfb.phase 1"), 1);
}

#[test]
fn a_loop_stays_although_nothing_uses_what_it_carries() {
    let text = after(
        "canonicalize,cse",
        "func.func @f(%n: i32) -> i32 {
          %zero = arith.constant 0 : i32
          %r = scf.while (%i = %n) : (i32) -> i32 {
            %more = arith.cmpi sgt, %i, %zero : i32
            scf.condition(%more) %i : i32
          } do {
          ^bb0(%i: i32):
            cfb.turn
            scf.yield %i : i32
          }
          return %r : i32
        }",
    );
    assert_eq!(
        (count(&text, "scf.while"), count(&text, "cfb.turn")),
        (1, 1),
        "{text}"
    );
}

#[test]
fn the_length_of_a_known_array_is_a_constant() {
    let source = "func.func @f(%x: f32, %i: i32) -> i32 {
      %a = cfb.array_create %x, %i, %x, %i : (f32, i32, f32, i32) -> !cfb.array<tuple<f32, i32>>
      %b = cfb.array_reverse %a : !cfb.array<tuple<f32, i32>>
      %n = cfb.array_len %b : !cfb.array<tuple<f32, i32>>
      return %n : i32
    }";
    let text = after("canonicalize", source);
    assert_eq!(
        (
            count(&text, "arith.constant 2 : i32"),
            count(&text, "cfb.array")
        ),
        (1, 0),
        "{text}"
    );
}

#[test]
fn calls_are_inlined_into_and_out_of_matches() {
    let source = "
    func.func private @zero(%t: !cfb.adt<@Tree>) -> i32 {
      %n = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
      ^bb0(%w: i32):
        cfb.yield %w : i32
      }, {
      ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
        %z = arith.constant 0 : i32
        cfb.yield %z : i32
      })
      return %n : i32
    }
    func.func @f(%t: !cfb.adt<@Tree>) -> i32 {
      %n = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
      ^bb0(%w: i32):
        cfb.yield %w : i32
      }, {
      ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
        %z = func.call @zero(%l) : (!cfb.adt<@Tree>) -> i32
        cfb.yield %z : i32
      })
      return %n : i32
    }";
    let text = after("inline", source);
    assert_eq!(
        (count(&text, "call"), count(&text, "cfb.match")),
        (0, 2),
        "{text}"
    );
}

#[test]
fn a_recursive_function_is_left() {
    let source = "func.func private @f(%t: !cfb.adt<@Tree>) -> i32 {
      %n = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
      ^bb0(%w: i32):
        cfb.yield %w : i32
      }, {
      ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
        %z = func.call @f(%l) : (!cfb.adt<@Tree>) -> i32
        cfb.yield %z : i32
      })
      return %n : i32
    }
    func.func @main(%t: !cfb.adt<@Tree>) -> i32 {
      %n = func.call @f(%t) : (!cfb.adt<@Tree>) -> i32
      return %n : i32
    }";
    assert_eq!(count(&after("inline", source), "func.func private @f"), 1);
}

#[test]
fn only_used_kernels_stay_and_types_always_do() {
    let source = "
    cfb.kernel @used {
    ^bb0(%rows: index, %x: tensor<?x3xf32>):
      cfb.yield %x : tensor<?x3xf32>
    }
    cfb.kernel @unused {
    ^bb0(%rows: index, %x: tensor<?x3xf32>):
      cfb.yield %x : tensor<?x3xf32>
    }
    func.func @f(%a: !cfb.lazy<tensor<3xf32>>) -> !cfb.lazy<tensor<3xf32>> {
      %c = cfb.record @used(%a) : (!cfb.lazy<tensor<3xf32>>) -> !cfb.lazy<tensor<3xf32>>
      return %c : !cfb.lazy<tensor<3xf32>>
    }";
    let text = after("symbol-dce", source);
    assert_eq!(count(&text, "cfb.kernel @used"), 1);
    assert_eq!(count(&text, "cfb.kernel @unused"), 0);
    assert_eq!(count(&text, "cfb.adt @Tree"), 1);
}

#[test]
fn constants_flow_through_matches_and_folds() {
    let source = "func.func @f(%t: !cfb.adt<@Tree>, %a: !cfb.array<i32>) -> (i32, i32, i32) {
      %one = arith.constant 1 : i32
      %n = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
      ^bb0(%w: i32):
        %x = arith.constant 7 : i32
        cfb.yield %x : i32
      }, {
      ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
        %x = arith.constant 7 : i32
        cfb.yield %x : i32
      })
      %s:2 = cfb.fold %a init(%one, %one) : (!cfb.array<i32>, i32, i32) -> (i32, i32) {
      ^bb0(%p: i32, %q: i32, %e: i32):
        %r = arith.addi %q, %e : i32
        cfb.yield %p, %r : i32, i32
      }
      return %n, %s#0, %s#1 : i32, i32, i32
    }";
    let text = after("sccp", source);
    assert!(text.contains("return %c7_i32, %c1_i32, %0#1"), "{text}");
}

#[test]
fn what_may_fail_stays_in_its_loop() {
    let source = "func.func @f(%a: !cfb.array<f32>, %i: i32, %n: index, %x: f32) -> f32 {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %s = scf.for %k = %zero to %n step %one iter_args(%acc = %x) -> f32 {
        %m = cfb.array_reverse %a : !cfb.array<f32>
        %g = cfb.array_get %m[%i] : !cfb.array<f32> -> (f32)
        %r = arith.addf %acc, %g : f32
        scf.yield %r : f32
      }
      return %s : f32
    }";
    let text = after("func.func(loop-invariant-code-motion)", source);
    let reverse = text.find("cfb.array_reverse").expect("still there");
    let body = text.find("scf.for").expect("still there");
    let get = text.find("cfb.array_get").expect("still there");
    assert!(reverse < body && body < get, "{text}");
}
