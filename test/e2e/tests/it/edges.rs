//! Programs at the edges: of host values alone, over axes of one element, of constants alone, and
//! ones that compute nothing for ever.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::tools::run;
use cohort_e2e::{BatchRun, Model, Rng};

use crate::language::check;

#[test]
fn programs_without_a_kernel_convert_numbers() {
    check(
        "fn main(x: f32) -> (i32, i32, f32) { (i32(x), i32(x * 1.0e20), erf(x)) }",
        &[],
        &[r#"{"x":1.5}"#, r#"{"x":-2.75}"#, r#"{"x":0}"#],
    );
}

#[test]
fn absolute_values_of_integers_are_instructions_of_a_gpu() {
    let program = "fn main(x: i32[n], y: i32[3]) -> (i32[n], i32[3]) { (abs(x), abs(y)) }";
    check(program, &[], &[r#"{"x":[1,-2,-2147483647],"y":[0,-5,7]}"#]);
    let model = Model::from_text(program, &[], &mut Rng::new(7));
    let arguments = [model.source.clone().into(), "--emit=ptx".into()];
    run("batch-opt", &arguments, "").expect_code(0);
}

#[test]
fn argmax_over_one_element_of_what_all_instances_share() {
    check(
        "dim H
        param w: f32[H, 1]
        fn main(x: i32[n]) -> (i32[n], i32[H], i32) {
          (argmax(ones([n, 1])), argmax(w), argmax(ones([1])) + len(x))
        }",
        &[("H", 3)],
        &[r#"{"x":[1,-2]}"#, r#"{"x":[]}"#],
    );
}

#[test]
fn a_slice_of_a_concatenation_of_constants() {
    check(
        "dim B, H
        param w: f32[B, H]
        fn main(x: f32[n, H]) -> (f32[n, B], f32[n, H + B], f32[_, H]) {
          let both = concat(ones([n, B]), ones([n, H]));
          (both[.., 0..B], both * 2, concat(ones([n, H]), ones([2, H]), axis = 0))
        }",
        &[("B", 2), ("H", 3)],
        &[r#"{"x":[[1,2,3],[4,5,6]]}"#, r#"{"x":[]}"#],
    );
}

#[test]
fn a_comparison_of_a_value_with_itself() {
    check(
        "fn main(x: f32[n, 4], y: f32[m, m]) -> (f32[n, 4], f32[m, m]) {
          let same = f32(iota([n, 4], 1) >= iota([n, 4], 1));
          (x + same, y @ (y + f32(iota([m, m], 1) >= iota([m, m], 1))))
        }",
        &[],
        &[
            r#"{"x":[[1,2,3,4]],"y":[[1,2],[3,4]]}"#,
            r#"{"x":[],"y":[]}"#,
        ],
    );
}

/// Upstream makes a constant of such a difference, which cannot have lengths.
#[test]
fn integers_less_themselves() {
    check(
        "fn main(x: i32[n], y: i32[n, m]) -> (i32[n, m], i32[n], i32[n], i32[n, 3]) {
          let zero = fill([n], 0);
          let i = iota([n, m], 0);
          (abs(i * i) - ((i - i) - iota([n, m], 0)) + y, x - x, -zero, iota([n, 3], 1) - iota([n, 3], 1))
        }",
        &[],
        &[
            r#"{"x":[7,-8],"y":[[1,2,3],[4,5,6]]}"#,
            r#"{"x":[],"y":[]}"#,
            r#"{"x":[1],"y":[[]]}"#,
        ],
    );
}

/// What is multiplied again is stored: computed anew for each product, it takes a compiler minutes.
#[test]
fn products_of_products_over_lengths() {
    let text = "dim A, B
        param p1: f32[A, B]  param p2: f32[A, B]
        fn main(x: f32[n, A], y: f32[m, A]) -> (f32[n, A], f32[n, A], f32[m, A], f32[n, n], f32[n, A]) {
          (tanh(attend(x + 0.25 * f32(abs(iota([n, A], 0)) % 5), attend(tanh(y @ p1), x @ p2, x), y)),
           attend(attend(x, y, y), y, y), attend(y, x, attend(x, y, y)),
           tanh(x @ transpose(x) @ (x @ transpose(x))), x @ (transpose(y) @ y))
        }";
    let model = Model::from_text(text, &[("A", 5), ("B", 3)], &mut Rng::new(3));
    let begin = std::time::Instant::now();
    model.compile(&[]);
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    let row = |k: usize| {
        format!(
            "[{},0.5,-1,0.25,{}]",
            0.2 * (k % 5) as f32,
            0.1 * (k % 7) as f32
        )
    };
    let rows = |count: usize| (0..count).map(row).collect::<Vec<_>>().join(",");
    let lines: Vec<String> = [(1, 1), (3, 2), (0, 3), (2, 0), (28, 17)]
        .iter()
        .map(|(n, m)| format!(r#"{{"x":[{}],"y":[{}]}}"#, rows(*n), rows(*m)))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(text, &[("A", 5), ("B", 3)], &lines);
}

/// Runs two instances, of which the first never ends, compiled and by the oracle.
#[track_caller]
fn ends_at_the_step_limit(program: &str, input: &str) {
    let model = Model::from_text(program, &[], &mut Rng::new(9));
    for way in [
        &[][..],
        &["--no-batch"],
        &["--in-flight", "2"],
        &["--oracle"],
    ] {
        let run = model.batch_run().args(&["--max-steps", "20000"]).args(way);
        let outcome = run.run(input).expect_code(1);
        let records = outcome.records();
        let kind = records[0]
            .result
            .as_ref()
            .map_err(|error| error.kind.as_str());
        assert_eq!(kind, Err("step_limit"), "{}", outcome.describe());
        assert!(records[1].result.is_ok(), "{}", outcome.describe());
    }
}

/// Each call makes two, so that no limit on depth is met in a lifetime.
#[test]
fn recursion_that_records_nothing_counts_steps() {
    let program = "fn f(k: i32) -> i32 { if k <= 1 { 1 } else { f(k - 1) + f(k - 2) } }
        fn main(k: i32) -> i32 { f(k) }";
    ends_at_the_step_limit(program, "{\"k\":60}\n{\"k\":9}\n");
}

#[test]
fn recursion_whose_result_nothing_uses_ends_at_the_step_limit() {
    let program = "fn f(k: i32) -> i32 { if k == 0 { 0 } else { g(k) } }
        fn g(k: i32) -> i32 { f(k) }
        fn main(k: i32) -> i32 { len(map(range(3), |i| f(k))) }";
    let model = Model::from_text(program, &[], &mut Rng::new(9));
    for way in [&[][..], &["--oracle"]] {
        let run = model
            .batch_run()
            .args(&["--max-steps", "2000", "--max-depth", "1000000"]);
        let outcome = run.args(way).run("{\"k\":1}\n{\"k\":0}\n").expect_code(1);
        assert!(
            outcome.lines()[0].contains("step_limit"),
            "{}",
            outcome.describe()
        );
        assert!(
            outcome.lines()[1].contains("output"),
            "{}",
            outcome.describe()
        );
    }
}

#[test]
fn loops_that_change_nothing_end_at_the_step_limit() {
    ends_at_the_step_limit(
        "fn main(x: f32[4]) -> f32[4] { while sum(abs(a)) > 0.5 with (a = x) { a * 1.0 } }",
        "{\"x\":[1,2,3,4]}\n{\"x\":[0,0,0,0]}\n",
    );
    ends_at_the_step_limit(
        "fn main(k: i32) -> i32 { while a > 0 with (a = k) { a } }",
        "{\"k\":3}\n{\"k\":0}\n",
    );
}

#[test]
fn loops_whose_results_nothing_uses_end_at_the_step_limit() {
    let input = "{\"k\":3}\n{\"k\":0}\n";
    for program in [
        // In part.
        "fn main(k: i32) -> i32 { let (_, b) = while u > 0 with (u = k, v = 2) { (u, v) }; b }",
        // In elements of which only their number counts.
        "fn f(k: i32) -> i32 { while u > 0 with (u = k) { u } }
         fn main(k: i32) -> i32 { len(map([1, 2, 3], |i| f(k))) }",
        // By what has nothing of it left.
        "fn main(k: i32) -> i32 { (while u > 0 with (u = k) { u }) * 0 }",
    ] {
        ends_at_the_step_limit(program, input);
    }
}

/// A GPU gives a kernel 4 KiB of arguments, and a kernel has at most 256 results.
#[test]
fn kernels_of_many_operands_and_results() {
    let all = |one: &dyn Fn(usize) -> String| (0..260).map(one).collect::<Vec<_>>().join(", ");
    let text = format!(
        "fn main({}, y: f32[2]) -> (f32[260, 2], [f32[2]]) {{ (tanh(stack([{}])), [{}]) }}\n\
         fn loss(y: f32[2]) -> f32 {{ sum(stack([{}])) }}\n",
        all(&|i| format!("x{i}: f32[2]")),
        all(&|i| format!("x{i}")),
        all(&|i| format!("tanh(y * {i}.5)")),
        all(&|i| format!("tanh(y * 0.{i}) * sigmoid(y + {i}.5)")),
    );
    let instance = |first: usize| {
        let inputs = all(&|i| format!("\"x{i}\": [{}, 0.{i}]", first + i));
        format!("{{{inputs}, \"y\": [0.25, -0.5]}}")
    };
    check(&text, &[], &[&instance(0), &instance(5)]);
    let model = Model::from_text(&text, &[], &mut Rng::new(90));
    let input = "{\"y\": [0.25, -0.5]}\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let gradients = |way: &[&str]| {
        let file = folder.path().join("gradients.jsonl");
        let run = BatchRun::new(&model.source).args(&["--entry", "loss"]);
        let run = run.arg("--input-gradients").arg(&file).args(way);
        let loss = run.run(input).expect_code(0).lines();
        let gradients = std::fs::read_to_string(&file).expect("gradients");
        let gradients = gradients.replace("\"gradient\"", "\"output\"");
        [loss, cohort_e2e::records::lines(&gradients)].concat()
    };
    let expected = gradients(&["--oracle"]);
    for way in [
        &[][..],
        &["--granularity", "function"],
        &["--device", "gpu-sim"],
    ] {
        compare_records(&expected, &gradients(way), Closeness::EachNumber(1e-4))
            .unwrap_or_else(|message| panic!("{message}, {way:?}"));
    }
}

/// The same of values with instance dims, which a product needs together.
#[test]
fn kernels_over_calls_of_many_operands() {
    let all =
        |one: &dyn Fn(usize) -> String, by: &str| (0..80).map(one).collect::<Vec<_>>().join(by);
    let text = format!(
        "fn main({}) -> f32[m, m] {{ {} ({}) @ transpose(a0) }}\n",
        all(
            &|i| format!("x{i}: (f32[m, n], f32[m, n], f32[m, n])"),
            ", "
        ),
        all(&|i| format!("let (a{i}, b{i}, c{i}) = x{i};"), " "),
        all(&|i| format!("a{i} * b{i} + tanh(c{i})"), " + "),
    );
    let instance = |rows: usize, columns: usize| {
        let tensor = |i: usize| {
            let row = |r: usize| {
                (0..columns)
                    .map(|c| ((7 * i + 3 * r + c) % 11) as f32 / 8.0 - 0.5)
                    .collect::<Vec<_>>()
            };
            format!("{:?}", (0..rows).map(row).collect::<Vec<_>>())
        };
        let inputs = |i: usize| format!("\"x{i}\": [{0}, {0}, {0}]", tensor(i));
        format!("{{{}}}", all(&inputs, ", "))
    };
    check(
        &text,
        &[],
        &[&instance(2, 3), &instance(1, 1), &instance(3, 0)],
    );
}

/// Numbers along an axis that is too long to be written out are counted where they are read.
#[test]
fn long_axes_are_counted_in_place() {
    check(
        "fn main(k: i32, x: f32[3]) -> (i32, f32[3], i32[3], f32, f32) {
          let line = iota([70000], 0);
          let rows = f32(iota([70000, 3], 0) % 11) * x;
          (sum(line % 7 + k), sum(rows, axis = 0), argmax(rows, axis = 0),
           sum(one_hot(k + 65000, 70000) * f32(line)), mean(random(k, [66000])))
        }",
        &[],
        &[r#"{"k":3,"x":[1,-2,0.5]}"#, r#"{"k":-1,"x":[0,1,2]}"#],
    );
}

#[test]
fn axes_longer_than_memory_are_an_instances_error() {
    let text = "fn main(k: i32) -> i32 {
          if k > 0 { argmax(iota([2000000000], 0) * k + argmax(iota([2000000000], 0) + k)) } else { sum(iota([2000000], 0) % 7) + k }
        }";
    let model = Model::from_text(text, &[], &mut Rng::new(89));
    let run = BatchRun::new(&model.source).args(&["--total-memory", "1G"]);
    let outcome = run.run("{\"k\": 0}\n{\"k\": 1}\n{\"k\": 0}\n");
    assert_eq!(outcome.code, 1, "{}", outcome.describe());
    let outputs = outcome.output.matches("5999995").count();
    assert_eq!(outputs, 2, "{}", outcome.describe());
    assert!(
        outcome.output.contains("memory_limit"),
        "{}",
        outcome.describe()
    );
}

/// A constant of more elements than memory holds is one that is repeated.
#[test]
fn constants_of_any_size_are_one_element() {
    let text = "fn main(x: f32[3]) -> f32 {
          sum(sum(zeros([500000, 500000]), axis = 1)) + sum(x)
        }";
    let model = Model::from_text(text, &[], &mut Rng::new(88));
    let outcome = BatchRun::new(&model.source).run("{\"x\": [1.0, 2.0, 3.5]}\n");
    assert_eq!(outcome.code, 0, "{}", outcome.describe());
    assert!(outcome.output.contains("6.5"), "{}", outcome.describe());
}
