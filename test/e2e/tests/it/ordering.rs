//! Sorts, running sums, one-hot rows and sums of segments, over lengths that the program knows and
//! lengths of an instance, against the oracle; bits do not depend on the batch.

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::{Value as Json, json};

use crate::models::to_text;

/// Lengths of instance dims. All tiles and vectors have a part that is not full.
const LENGTHS: [usize; 6] = [0, 1, 3, 28, 61, 257];

/// Compares with the oracle, on the processor and on the simulated GPU, and bit for bit in other
/// batches.
#[track_caller]
fn check_lines(model: &Model, input: &str, failing: bool) {
    let text = std::fs::read_to_string(&model.source).unwrap_or_default();
    let expected = model.oracle_lines(input);
    let is_error = |line: &&String| line.contains("\"error\"");
    let errors = expected.iter().filter(is_error).count();
    let fails_as_said = errors < expected.len() && (errors > 0) == failing;
    assert!(fails_as_said, "{expected:?}\nin\n{text}");
    let compiled = model.compile(&[]);
    let run = |arguments: &[&str]| {
        let outcome = compiled.batch_run().args(arguments).run(input);
        assert!(outcome.code < 2, "{}\nin\n{text}", outcome.describe());
        outcome.lines()
    };
    let batched = run(&[]);
    let closeness = Closeness::WholeOutput(1e-5);
    compare_records(&expected, &batched, closeness)
        .unwrap_or_else(|message| panic!("{message}\nin\n{text}"));
    for arguments in [&["--no-batch"][..], &["--batch", "3", "--threads", "2"]] {
        assert_eq!(batched, run(arguments), "{arguments:?} in\n{text}");
    }
    let outcome = model.batch_run().args(&["--device", "gpu-sim"]).run(input);
    assert!(outcome.code < 2, "{}\nin\n{text}", outcome.describe());
    compare_records(&expected, &outcome.lines(), closeness)
        .unwrap_or_else(|message| panic!("{message}\nfrom {}\nin\n{text}", outcome.describe()));
}

/// Instances of every length, of coarse numbers: many are equal, and none are nearly so.
#[track_caller]
fn check(text: &str, dims: &[(&str, u64)], failing: bool) {
    let mut rng = Rng::new(83);
    let model = Model::from_text(text, dims, &mut rng);
    let mut instances = Instances::new(&model.program, 4);
    let mut lines = Vec::new();
    for (index, length) in LENGTHS.into_iter().chain([5, 3]).enumerate() {
        instances.lengths_from(&[length]);
        let line = instances.instance(&format!("i{index}"), Shape::Smallest, &mut rng);
        lines.push(coarse(line));
    }
    check_lines(&model, &to_text(&lines), failing);
}

fn coarse(value: Json) -> Json {
    match value {
        Json::Array(values) => values.into_iter().map(coarse).collect(),
        Json::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, coarse(value)))
            .collect(),
        Json::Number(number) if number.is_f64() => {
            json!((number.as_f64().unwrap_or(0.0) * 16.0).round() / 8.0)
        }
        other => other,
    }
}

#[test]
fn lines_of_known_length_are_sorted() {
    for length in [1, 3, 28, 61, 257] {
        check(
            "dim D
            param w: f32[D]
            fn main(x: f32[D], k: i32[D], y: f32[2, D]) -> (f32[D], i32[D], i32[D], i32[D], f32[2, D], i32[2, D]) {
              (sort(x), argsort(x), sort(k), argsort(k), sort(y, axis = 0), argsort(y))
            }",
            &[("D", length)],
            false,
        );
    }
}

#[test]
fn lines_of_an_instance_s_length_are_sorted() {
    check(
        "fn main(x: f32[n], k: i32[n], y: f32[n, 5]) -> (f32[n], i32[n], i32[n], i32[n], f32[n, 5], i32[n, 5]) {
          (sort(x), argsort(x), sort(k), argsort(k), sort(y, axis = 0), argsort(y, axis = -1))
        }",
        &[],
        false,
    );
}

#[test]
fn products_are_computed_once_to_be_sorted() {
    let text = "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D], g: f32[2, n, D]) -> (f32[n, n], f32[n, n], i32[n, D], f32[2, n, n], f32[n, n]) {
          let scores = x @ transpose(x);
          (sort(scores, axis = 0), sort(tanh(0.5 * scores)), argsort(x @ w, axis = 0),
           sort(einsum(\"gnd,gmd->gnm\", g, g), axis = 1), sort(softmax(scores)))
        }";
    let mut rng = Rng::new(86);
    let model = Model::from_text(text, &[("D", 9)], &mut rng);
    let mut instances = Instances::new(&model.program, 4);
    let lines = [0, 1, 2, 3, 17, 28].map(|length| {
        instances.lengths_from(&[length]);
        instances.instance(&format!("i{length}"), Shape::Smallest, &mut rng)
    });
    check_lines(&model, &to_text(&lines), false);
}

/// What is compared lies in several parts of a concatenation, with views before it.
#[test]
fn slices_over_the_seam_of_a_concatenation_are_sorted() {
    let text = "fn main(u: f32[m, n, 4]) -> f32[m, 1, n, 4] {
          let v = relu(reshape(u, [m, 1, n, 4]) + 0.1);
          sort(concat(v, v)[.., .., .., 1..5], axis = 2)
        }";
    let mut rng = Rng::new(87);
    let model = Model::from_text(text, &[], &mut rng);
    let mut instances = Instances::new(&model.program, 4);
    let lines = [0, 1, 3, 28].map(|length| {
        instances.lengths_from(&[length]);
        instances.instance(&format!("i{length}"), Shape::Smallest, &mut rng)
    });
    check_lines(&model, &to_text(&lines), false);
}

#[test]
fn the_largest_are_picked_with_their_indices() {
    for length in [3, 28, 257] {
        check(
            "dim D
            param w: f32[D]
            fn main(x: f32[D], k: i32[D], y: f32[n, D]) -> ((f32[3], i32[3]), f32[3], (f32[n, 1], i32[n, 1])) {
              let (values, indices) = topk(k, 3);
              (topk(x, 3), f32(values * indices), topk(y, 1))
            }",
            &[("D", length)],
            false,
        );
    }
}

/// As a slice is, more than there are is the instance's error.
#[test]
fn the_largest_of_an_instance_s_length() {
    check(
        "fn main(x: f32[n], y: f32[n, 2], z: f32[n]) -> ((f32[2], i32[2]), (f32[3, 2], i32[3, 2]), (f32[n], i32[n])) {
          (topk(x, 2), topk(y, 3, axis = 0), topk(z, n))
        }",
        &[],
        true,
    );
}

#[test]
fn the_least_have_indices_as_the_largest_do() {
    check(
        "dim D
        param w: f32[D]
        fn main(x: f32[D], k: i32[D], y: f32[n, D]) -> (i32, i32, i32[n], i32) {
          (argmin(x), argmin(k), argmin(y), argmin(k - 2147483647 - 1))
        }",
        &[("D", 28)],
        false,
    );
}

#[test]
fn sums_run_along_known_lengths_and_an_instance_s() {
    for length in [1, 3, 61] {
        check(
            "dim D
            param w: f32[D]
            fn main(x: f32[D], k: i32[D], y: f32[n, D], i: i32[n]) -> (f32[D], i32[D], f32[n, D], f32[n, D], i32[n], f32[D]) {
              (cumsum(x), cumsum(k), cumsum(y), cumsum(y, axis = 0), cumsum(i), cumsum(w) * x)
            }",
            &[("D", length)],
            false,
        );
    }
}

#[test]
fn indices_become_one_hot_rows() {
    check(
        "dim D
        param w: f32[D]
        fn main(k: i32, row: i32[D], i: i32[n], grid: i32[2, 3]) -> (f32[5], f32[D, 3], f32[n, D], f32[2, 3, 2], f32[n, n]) {
          (one_hot(k, 5), one_hot(row - 1, 3), one_hot(i, D), one_hot(grid, 2), one_hot(i, n))
        }",
        &[("D", 3)],
        false,
    );
}

#[test]
fn rows_are_added_up_by_segment() {
    check(
        "dim D, S
        param w: f32[D, S]
        fn main(x: f32[n, D], i: i32[n], y: f32[D], k: i32[D], z: i32[n]) -> (f32[S, D], f32[4], i32[4], f32[4]) {
          (segment_sum(x, i, S), segment_sum(y, k, 4), segment_sum(z, i, 4), segment_sum(y, max(k - 1, 0), 4))
        }",
        &[("D", 28), ("S", 5)],
        false,
    );
}

#[test]
fn segments_and_classes_are_as_many_as_the_host_says() {
    let text = "fn main(x: f32[n, 2], i: i32[n], k: i32) -> (f32[_, 2], f32[n, _], f32[_, 2]) {
          let sums = segment_sum(x, i, k);
          (sums / reshape(max(segment_sum(ones([n]), i, k), 1.0), [k, 1]), one_hot(i, k + 1), sums + zeros([k, 2]))
        }";
    let model = Model::from_text(text, &[], &mut Rng::new(85));
    let input = r#"{"id":"a","x":[[1,2],[3,4]],"i":[0,2],"k":3}
{"id":"b","x":[[1,2],[3,4]],"i":[0,2],"k":2}
{"id":"c","x":[],"i":[],"k":0}
{"id":"d","x":[],"i":[],"k":-1}
{"id":"e","x":[[1,2],[3,4],[5,6]],"i":[2,2,0],"k":70}
"#;
    check_lines(&model, input, true);
}

#[test]
fn a_segment_out_of_range_is_an_error_of_its_instance() {
    let text = "dim D
        param w: f32[D]
        fn main(x: f32[n, D], i: i32[n], k: i32) -> f32[3, D] { segment_sum(x, i - k, 3) }";
    let model = Model::from_text(text, &[("D", 2)], &mut Rng::new(84));
    let input = r#"{"id":"a","x":[[1,2],[3,4]],"i":[0,2],"k":0}
{"id":"b","x":[[1,2],[3,4]],"i":[0,2],"k":1}
{"id":"c","x":[[1,2],[3,4]],"i":[0,3],"k":0}
{"id":"d","x":[],"i":[],"k":9}
{"id":"e","x":[[1,2],[3,4]],"i":[2,2],"k":2}
"#;
    check_lines(&model, input, true);
}

#[test]
fn rows_are_put_in_place_and_the_last_of_equal_ones_counts() {
    check(
        "dim D, S
        param w: f32[S, D]
        fn main(x: f32[n, D], i: i32[n], y: f32[D], k: i32[D], z: i32[n], b: bool[n])
            -> (f32[S, D], f32[S, D], f32[D], i32[S], bool[S], f32[_, D]) {
          let ends = concat(x, x, axis = 0);
          (scatter(w, i, x), scatter_add(w, i, x), scatter(y, k, y * 2.0), scatter(zeros_i(), i, z),
           scatter(zeros_i() > 0, i, b), scatter(ends, iota([n], 0) * 2, -x))
        }
        fn zeros_i() -> i32[S] { fill([S], -3) }",
        &[("D", 28), ("S", 28)],
        false,
    );
}

#[test]
fn a_row_out_of_range_is_an_error_of_its_instance() {
    let text = "dim D
        param w: f32[D]
        fn main(x: f32[n, D], i: i32[m], y: f32[m, D]) -> (f32[n, D], f32[n, D]) { (scatter(x, i, y), scatter_add(x, i, y)) }";
    let model = Model::from_text(text, &[("D", 2)], &mut Rng::new(86));
    let input = r#"{"id":"a","x":[[1,2],[3,4]],"i":[0,1,0],"y":[[5,6],["NaN","-Infinity"],[-0.0,9]]}
{"id":"b","x":[[1,2],[3,4]],"i":[2],"y":[[5,6]]}
{"id":"c","x":[[1,2],[3,4]],"i":[0,-1],"y":[[5,6],[7,8]]}
{"id":"d","x":[],"i":[],"y":[]}
{"id":"e","x":[],"i":[0],"y":[[5,6]]}
{"id":"f","x":[[1,2],[3,4]],"i":[],"y":[]}
"#;
    check_lines(&model, input, true);
}

/// One place for what is not a number: after all numbers, in whatever order.
#[test]
fn nan_comes_after_all_numbers() {
    let text = "dim D
        param w: f32[D]
        fn main(x: f32[D], y: f32[n]) -> (f32[D], i32[D], (f32[D], i32[D]), i32, i32, f32[n], i32[n], (f32[2], i32[2]), i32, i32) {
          let a = log(x) + 0 * w;
          let b = log(y);
          (sort(a), argsort(a), topk(a, D), argmin(a), argmax(a), sort(b), argsort(b), topk(b, 2), argmin(b), argmax(b))
        }";
    let model = Model::from_text(text, &[("D", 5)], &mut Rng::new(85));
    let input = r#"{"id":"a","x":[-1,0.5,0,-2,1e30],"y":[-1,2]}
{"id":"b","x":[-1,-2,-3,-4,-5],"y":[-1,-2,-3]}
{"id":"c","x":[1,2,-3,2,1],"y":[0,-1,0,1e38,2]}
"#;
    check_lines(&model, input, false);
}
