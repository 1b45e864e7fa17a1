//! Instances that meet several errors end with the first in the order of the program, compiled as in the
//! oracle, and what nothing uses has none.

use cohort_e2e::records::Record;
use cohort_e2e::{Model, Rng};

/// Each line ends with an error of the kind, whatever runs it.
#[track_caller]
fn check_kinds(text: &str, lines: &[(&str, &str)]) {
    let model = Model::from_text(text, &[("H", 3)], &mut Rng::new(5));
    let input: Vec<&str> = lines.iter().map(|(line, _)| *line).collect();
    for way in [
        &[][..],
        &["--oracle"],
        &["--no-batch"],
        &["--in-flight", "2"],
    ] {
        let outcome = model
            .batch_run()
            .args(way)
            .run(&input.join("\n"))
            .expect_code(1);
        let kinds: Vec<String> = (outcome.lines().iter())
            .map(|line| Record::parse(line).expect("already checked").result)
            .map(|result| result.map_or_else(|error| error.kind, |_| String::new()))
            .collect();
        let expected: Vec<&str> = lines.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, expected, "{}", outcome.describe());
    }
}

const INDEX: &str = "index_out_of_range";
const NAN: &str = "nan_decision";
const DIVISION: &str = "division_by_zero";

/// What the host could tell at once waits for what stands before it.
#[test]
fn a_decision_comes_before_an_index_behind_it() {
    check_kinds(
        "dim H
        param w: f32[H, H]
        fn main(x: f32[H], xs: [f32], k: i32) -> f32 {
          let a = xs[argmax(sqrt(x) @ w) - 3];
          let b = xs[k];
          a + b
        }",
        &[
            (r#"{"x":[-1,-1,-1],"xs":[1,2],"k":9}"#, NAN),
            (r#"{"x":[1,2,3],"xs":[1,2],"k":9}"#, INDEX),
            (r#"{"x":[-1,-1,-1],"xs":[1,2],"k":1}"#, NAN),
        ],
    );
}

#[test]
fn an_index_comes_before_a_decision_behind_it() {
    check_kinds(
        "dim H
        param w: f32[H, H]
        fn main(x: f32[H], xs: [f32], k: i32) -> f32 {
          let a = xs[k];
          if sum(sqrt(x) @ w) > 0.5 { a } else { xs[0] }
        }",
        &[
            (r#"{"x":[-1,-1,-1],"xs":[1,2],"k":9}"#, INDEX),
            (r#"{"x":[-1,-1,-1],"xs":[1,2],"k":0}"#, NAN),
            (r#"{"x":[1,2,3],"xs":[1,2],"k":0}"#, ""),
        ],
    );
}

/// What a recursion ends in stands before what needs nothing of it.
#[test]
fn an_error_within_a_call_comes_before_one_behind_the_call() {
    check_kinds(
        "dim H
        param w: f32[H, H]
        fn f(x: f32[H], xs: [i32], k: i32) -> f32[H] {
          if k > 0 { tanh(f(x @ w, xs, k - xs[k - 1])) } else { x }
        }
        fn main(x: f32[H], xs: [i32], k: i32, d: i32) -> (f32[H], i32) {
          let h = f(f(x, xs, 1), xs, k);
          let q = 5 / d;
          (h + f32(q), xs[q])
        }",
        &[
            (r#"{"x":[1,2,3],"xs":[1,1],"k":9,"d":0}"#, INDEX),
            (r#"{"x":[1,2,3],"xs":[1,1],"k":2,"d":0}"#, DIVISION),
            (r#"{"x":[1,2,3],"xs":[1,1],"k":2,"d":1}"#, INDEX),
            (r#"{"x":[1,2,3],"xs":[1,1],"k":2,"d":5}"#, ""),
        ],
    );
}

#[test]
fn a_decision_in_a_loop_comes_before_an_index_of_the_same_turn() {
    check_kinds(
        "dim H
        param w: f32[H, H]
        fn main(x: f32[H], xs: [f32], k: i32) -> f32[H] {
          for i in range(k) with (h = x) {
            let h = if max(sqrt(h)) > 0.5 { h @ w } else { h };
            h * xs[i]
          }
        }",
        &[
            (r#"{"x":[-1,-1,-1],"xs":[],"k":3}"#, NAN),
            (r#"{"x":[0,0,0],"xs":[],"k":3}"#, INDEX),
            (r#"{"x":[0,0,0],"xs":[-1,2],"k":3}"#, INDEX),
        ],
    );
}

#[test]
fn a_value_that_nothing_uses_has_no_error() {
    check_kinds(
        "dim H
        param w: f32[H, H]
        fn deep(xs: [f32], k: i32) -> f32 { if k > 0 { deep(xs, k - 1) } else { xs[9] } }
        fn main(x: f32[H], xs: [f32], k: i32) -> f32 {
          let (_a, b) = (xs[k], xs[0]);
          let _c = xs[k];
          let _d = deep(xs, k);
          let _e = if max(sqrt(x) @ w) > 0.5 { xs[k] } else { 5.0 };
          b
        }",
        &[
            (r#"{"x":[-1,-1,-1],"xs":[1,2],"k":9}"#, ""),
            (r#"{"x":[-1,-1,-1],"xs":[],"k":9}"#, INDEX),
        ],
    );
}
