//! Gradients of compiled programs: against the oracle's, and the same bits whatever the batch.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::losses::with_loss;
use cohort_e2e::operations::{self, DIMS, LENGTHS, Use};
use cohort_e2e::programs::{self, RandomProgram, Traits};
use cohort_e2e::tools::{Outcome, run};
use cohort_e2e::{BatchRun, Model, Rng};
use cohort_oracle::{Data, Tensor, read_weights};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::models::{MODELS, model_case, to_text};

/// How far a gradient may be from the oracle's, as a part of its parameter's largest.
const TOLERANCE: f64 = 1e-4;
/// A parameter whose gradients are this part of the largest of all is compared with that: they are what
/// is left of larger ones.
const SMALL: f64 = 1e-3;

/// A program with a loss, its weights, its input, and what runs leave.
struct Case {
    folder: TempDir,
    model: Model,
    input: String,
}

impl Case {
    /// `None` where the program gives no floats.
    fn new(model: Model, instances: &[Json]) -> Option<Case> {
        let text = fs::read_to_string(&model.source).expect("the program is there");
        let entry = &model.program.functions[model.program.entry.0];
        let text = with_loss(&text, entry)?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let case = Case {
            folder,
            model,
            input: to_text(instances),
        };
        fs::write(case.path("model.coh"), text).expect("the temporary folder is writable");
        Some(case)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, program: &str, gradients: &str, arguments: &[&str]) -> Outcome {
        BatchRun::new(&self.path(program))
            .weights(&self.model.weights_path)
            .arg("--gradients")
            .arg(self.path(gradients))
            .args(arguments)
            .run(&self.input)
    }

    /// The oracle's gradients and those of a compiled program agree. An instance may fail, in both.
    #[track_caller]
    fn compare(&self, arguments: &[&str]) {
        let expected = self.run("model.coh", "expected", &["--entry", "loss", "--oracle"]);
        assert!(expected.code < 2, "{}", expected.describe());
        let arguments = [&["--entry", "loss"], arguments].concat();
        let outcome = self.run("model.coh", "g", &arguments);
        let outcome = outcome.expect_code(expected.code);
        compare(&self.path("expected"), &self.path("g"), &outcome);
    }

    fn bits(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("the gradients were written")
    }
}

fn largest(numbers: &[f64]) -> f64 {
    numbers
        .iter()
        .fold(0.0, |most, number| most.max(number.abs()))
}

/// The gradients of two files agree.
#[track_caller]
pub fn compare(expected: &Path, given: &Path, outcome: &Outcome) {
    let [expected, given] = [expected, given].map(|path| {
        let file = read_weights(path).expect("the gradients can be read");
        let numbers = |tensor: Tensor| match tensor.data {
            Data::F32(data) => data,
            other => panic!("{other:?}"),
        };
        let named = file
            .into_iter()
            .map(|(name, tensor)| (name, numbers(tensor)));
        named.collect::<Vec<_>>()
    });
    let most = expected.iter().map(|(_, numbers)| largest(numbers));
    let most = most.fold(0.0, f64::max);
    assert_eq!(expected.len(), given.len(), "{}", outcome.describe());
    for ((name, expected), (other, given)) in expected.iter().zip(&given) {
        assert_eq!(name, other);
        let allowed = TOLERANCE * largest(expected).max(SMALL * most);
        for (place, (expected, given)) in expected.iter().zip(given).enumerate() {
            let is_close = (expected - given).abs() <= allowed
                || expected.is_nan() && given.is_nan()
                || expected == given;
            assert!(
                is_close,
                "the gradient of `{name}` at {place}: {expected} by the oracle, {given} compiled\n{}",
                outcome.describe()
            );
        }
    }
}

#[test]
fn gradients_of_examples_are_the_oracles() {
    for case in MODELS.iter().filter(|case| case.name != "drnn") {
        let mut rng = Rng::new(94);
        let model = case.with_sizes([7, 5, 4, 3], &mut rng);
        let instances = case.instances(&model, 9, &mut rng);
        let case = Case::new(model, &instances).expect("it gives floats");
        case.compare(&[]);
    }
}

/// At awkward sizes of everything.
#[test]
fn gradients_at_awkward_sizes_are_the_oracles() {
    for (name, sizes) in [
        ("treelstm", [3, 61, 28, 1]),
        ("treelstm", [2, 1, 1, 257]),
        ("encoder", [0, 28, 61, 0]),
        ("nestedrnn", [5, 0, 33, 3]),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(95);
        let model = case.with_sizes(sizes, &mut rng);
        let instances = case.instances(&model, 5, &mut rng);
        Case::new(model, &instances)
            .expect("it gives floats")
            .compare(&[]);
    }
}

/// One program, compiled once, in many ways to run it.
#[test]
fn gradients_do_not_depend_on_the_batch() {
    for name in ["treelstm", "act", "encoder", "stackrnn"] {
        let case = model_case(name);
        let mut rng = Rng::new(96);
        let model = case.with_sizes([9, 8, 17, 3], &mut rng);
        let instances = case.instances(&model, 14, &mut rng);
        let case = Case::new(model, &instances).expect("it gives floats");
        let artifact = case.path("model.cohort");
        let compile = [
            case.path("model.coh").into_os_string(),
            "--entry=loss".into(),
            "--gradients".into(),
            "--emit=artifact".into(),
            "--weights".into(),
            case.model.weights_path.clone().into_os_string(),
            "-o".into(),
            artifact.into_os_string(),
        ];
        run("batch-opt", &compile, "").expect_code(0);
        case.run("model.cohort", "first", &[]).expect_code(0);
        for arguments in [
            &["--batch", "1"][..],
            &["--batch", "5", "--threads", "2"],
            &["--in-flight", "3"],
            &["--scheduler", "agenda"],
            &["--scheduler", "lookahead"],
            &["--granularity", "instance"],
            &["--no-batch"],
            &["--without", "gather-fusion"],
        ] {
            let outcome = case.run("model.cohort", "again", arguments).expect_code(0);
            let same = case.bits("first") == case.bits("again");
            assert!(same, "other bits: {}", outcome.describe());
        }
    }
}

/// The programs are compiled in other ways, whose numbers may differ in their last bits.
#[test]
fn gradients_without_techniques_are_the_oracles() {
    let ways = [
        &["--granularity", "operator"][..],
        &["--granularity", "function"],
        &[
            "--without",
            "accumulate-products,fuse-products,hoist-constants",
        ],
        &["--without", "operand-reuse"],
        &[
            "--without",
            "recognise-reductions,split-products,hoist-operators",
        ],
        &["--without", "online-folds,fuse-rows,split-tails"],
    ];
    for (name, way) in [
        "treelstm",
        "encoder",
        "treegru",
        "act",
        "childsum",
        "masked_mha",
    ]
    .into_iter()
    .zip(ways)
    {
        let case = model_case(name);
        let mut rng = Rng::new(97);
        let model = case.with_sizes([7, 8, 6, 3], &mut rng);
        let instances = case.instances(&model, 7, &mut rng);
        Case::new(model, &instances)
            .expect("it gives floats")
            .compare(way);
    }
}

/// What an instance that fails computed counts for nothing, and nor does a loss that is not finite.
#[test]
fn an_instance_that_fails_adds_nothing() {
    let text = "dim D\n param w: f32[D]\n
        fn main(x: f32[D], i: i32) -> f32 { log(x @ w) * x[i] }";
    let mut rng = Rng::new(98);
    let model = Model::from_text(text, &[("D", 2)], &mut rng);
    let instances = |texts: &[&str]| -> Vec<Json> {
        let parse = |text: &&str| serde_json::from_str(text).expect("JSON");
        texts.iter().map(parse).collect()
    };
    let good = r#"{"id": "good", "x": [1.0, 2.0], "i": 1}"#;
    let bad = [
        r#"{"id": "index", "x": [1.0, 2.0], "i": 7}"#,
        good,
        r#"{"id": "zero", "x": [0.0, 0.0], "i": 0}"#,
        r#"{"id": "wrong", "x": [0.0], "i": 0}"#,
    ];
    let mut case = Case::new(model, &instances(&[good])).expect("it gives floats");
    // The signs of the weights are whatever they are: a loss of NaN would be none for both.
    let weights = [("w".to_owned(), Tensor::f32(&[2], vec![0.5, 0.25]))];
    cohort_e2e::weights::write_weights(&case.model.weights_path, &weights.into());
    let entry = ["--entry", "loss"];
    case.run("model.coh", "alone", &entry).expect_code(0);
    case.input = to_text(&instances(&bad));
    let outcome = case.run("model.coh", "among", &entry).expect_code(1);
    assert!(case.bits("alone") == case.bits("among"));
    let kinds: Vec<bool> = [
        "index_out_of_range",
        "\"good\",\"output\"",
        "loss_not_finite",
        "bad_input",
    ]
    .iter()
    .zip(outcome.output.replace(": ", ":").replace(", ", ",").lines())
    .map(|(text, line)| line.contains(text))
    .collect();
    assert_eq!(
        kinds,
        [true; 4],
        "{}\n{}",
        outcome.output,
        outcome.describe()
    );
}

/// Either side may lack dims that the other has, known ones and those of the instance.
#[test]
fn gradients_of_products_of_any_ranks_are_the_oracles() {
    let dims = [("D", 3)];
    for (left, right) in [
        ("f32[2, n, D]", "w: f32[2, D, D]"),
        ("f32[n, m, D]", "w: f32[D, D]"),
        ("f32[n, D]", "w: f32[2, D, D]"),
        ("f32[n, m, D]", "f32[n, D, k]"),
        ("f32[m, D]", "f32[n, D, 4]"),
        ("f32[D]", "f32[n, D, 4]"),
        ("f32[n, m, D]", "f32[D]"),
        ("f32[n, 2, m, D]", "f32[n, 2, D, k]"),
    ] {
        let (parameter, argument, factor) = match right.strip_prefix("w: ") {
            Some(ty) => (format!("param w: {ty}"), String::new(), "w"),
            None => (String::new(), format!(", y: {right}"), "y"),
        };
        let text = format!(
            "dim D\nparam s: f32[D]\n{parameter}\n\
             fn main(x: {left}{argument}) -> f32 {{ let z = (x * s) @ {factor}; sum(z * z) }}"
        );
        assert!(of_program(&text, &dims, &LENGTHS, 99), "{text}");
    }
}

/// Whatever dims a reshape counts the rows before a length by, and whatever becomes of those behind it.
#[test]
fn gradients_of_reshapes_before_a_length_are_the_oracles() {
    let text = "param p: f32[6, 1]  param q: f32[3, 2, 1]  param r: f32[6, 1, 4]  param t: f32[3, 2, 1, 2, 2]
        fn main(x: f32[6, n], y: f32[6, n, 4], z: f32[n, 6, m]) -> f32 {
          let a = reshape(x * p, [3, 2, n]);
          let b = reshape(y * r, [3, 2, n, 2, 2]);
          let c = reshape(z * p, [n, 3, 1, 2, m]);
          sum(tanh(a * q)) + sum(sin(b * t)) + sum(tanh(reshape(c, [n, 3, 2, m]) * q))
            + sum(sin(reshape(tanh(a * q), [3, 1, 2, n]) * q))
        }";
    let mut rng = Rng::new(103);
    let model = Model::from_text(text, &[], &mut rng);
    let mut instances = Instances::new(&model.program, 4);
    instances.lengths_from(&[0, 1, 3, 28, 61]);
    let instances: Vec<Json> = (0..9)
        .map(|index| {
            let shape = Shape::nth(index, 4, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let case = Case::new(model, &instances).expect("it gives floats");
    case.compare(&[]);
    case.run("model.coh", "alone", &["--entry", "loss", "--no-batch"])
        .expect_code(0);
    assert!(case.bits("g") == case.bits("alone"));
    case.compare(&["--device", "gpu-sim"]);
}

/// Gradients go back through what makes a value of known shape one of any, and one of any known again.
#[test]
fn gradients_of_widened_values_are_the_oracles() {
    let text = "dim D
        param w: f32[3, D]  param s: f32[3]
        fn mixed(x: f32[a, D], y: f32[a]) -> f32[D] { (softmax(y) + zeros([a])) @ tanh(x) }
        fn main(k: f32[3], m: f32[3, D], z: f32[n, D]) -> f32 {
          let y: f32[_] = k * s;
          let narrow: f32[3] = tanh(y) * 0.5;
          let rows: f32[_, D] = m * w;
          let products = softmax(rows @ transpose(rows)) @ rows;
          sum(mixed(w, narrow + s)) + sum(mixed(products, sum(products, axis = 1))) + sum(y) + sum(tanh(z @ transpose(rows)))
        }";
    assert!(of_program(text, &[("D", 4)], &LENGTHS, 98), "{text}");
}

/// Gradients go back to elements whose lengths nothing else has.
#[test]
fn gradients_of_elements_that_alone_have_lengths_are_the_oracles() {
    let text = "dim D
        param w: f32[D]  param s: f32[D]
        fn main(x: f32[n, D], ws: [i32]) -> f32 {
          let table = stack(map(range(3), |i| stack(map(ws, |v| tanh(w * f32(i + 1))))));
          let sums = sum(map(range(3), |i| stack(map(ws, |v| s * w * f32(v)))));
          sum(table * table) + sum(sums * s) + sum(x * w)
        }";
    assert!(of_program(text, &[("D", 4)], &LENGTHS, 99), "{text}");
}

/// A recursion begins with the whole parameter, and a row of the same one is looked up.
#[test]
fn gradients_of_what_is_looked_up_and_read_whole_are_the_oracles() {
    for (seed, start) in ["walk(s, n, s[k])", "walk(tanh(s + s[k]), n, s[k])"]
        .into_iter()
        .enumerate()
    {
        let text = format!(
            "param s: f32[4, 3]
            fn main(k: i32, n: i32) -> f32[4, 3] {{ {start} }}
            fn walk(h: f32[4, 3], n: i32, r: f32[3]) -> f32[4, 3] {{
              if n == 0 {{ h }} else {{ walk(tanh(h + r), n - 1, r) }}
            }}"
        );
        let model = Model::from_text(&text, &[], &mut Rng::new(seed as u64));
        let instances: Vec<Json> = [(1, 2), (3, 0), (0, 3), (1, 1)]
            .iter()
            .map(|(k, n)| json!({ "k": k, "n": n }))
            .collect();
        let case = Case::new(model, &instances).expect("it gives floats");
        case.compare(&[]);
    }
}

/// A value is read by one call, by two or by three, as the instance goes.
#[test]
fn gradients_of_what_several_calls_read_are_the_oracles() {
    let text = "param w: f32[3, 3]
        fn main(h: f32[3], n: i32) -> f32[3] {
          if n == 0 { h } else {
            let g = tanh(h @ w);
            let left = main(g, n - 1);
            if n == 1 { left } else if n == 2 { left + main(g * 2.0, 0) } else {
              left + main(g, n - 2) + main(g, n - 3)
            }
          }
        }";
    let model = Model::from_text(text, &[], &mut Rng::new(97));
    let instances: Vec<Json> = (0..6)
        .map(|n| json!({ "h": [0.5, -0.25, 0.125 * f64::from(n)], "n": n }))
        .collect();
    let case = Case::new(model, &instances).expect("it gives floats");
    case.compare(&[]);
    let outcome = case.run("model.coh", "one", &["--entry", "loss", "--batch", "1"]);
    outcome.expect_code(0);
    assert_eq!(case.bits("g"), case.bits("one"));
}

/// Each state is read by the next step and by what is said of it.
#[test]
fn cotangents_are_added_up_by_the_gradient_itself() {
    let case = model_case("birnn");
    let mut rng = Rng::new(98);
    let model = case.with_sizes([7, 5, 4, 3], &mut rng);
    let instances = case.instances(&model, 9, &mut rng);
    let case = Case::new(model, &instances).expect("it gives floats");
    let stats = case.path("stats.json");
    let stats_argument = stats.to_str().expect("a path of letters");
    case.run(
        "model.coh",
        "g",
        &["--entry", "loss", "--stats", stats_argument],
    )
    .expect_code(0);
    let text = fs::read_to_string(stats).expect("the statistics were written");
    let stats: Json = serde_json::from_str(&text).expect("they are JSON");
    let kernels = stats["kernels"].as_array().expect("a list of kernels");
    let rows_of = |part: &str| {
        let named = kernels.iter().filter(|kernel| {
            kernel["name"]
                .as_str()
                .is_some_and(|name| name.contains(part))
        });
        named
            .map(|kernel| kernel["rows"].as_u64().expect("a count"))
            .sum::<u64>()
    };
    assert!(rows_of("$gradient$") > 0);
    assert_eq!(rows_of("gradient$add"), 0, "{text}");
    assert!(stats["gradients"]["seconds"].as_f64() > stats["gradients"]["sum_seconds"].as_f64());
}

/// Of every built-in and operator that has a gradient.
#[test]
fn gradients_of_operations_are_the_oracles() {
    const SAMPLE: usize = 211;
    let mut uses = operations::all();
    Rng::new(100).shuffle(&mut uses);
    let chosen: Vec<&Use> = match std::env::var("COHORT_OPERATIONS") {
        Ok(text) => uses.iter().filter(|one| one.text.contains(&text)).collect(),
        Err(_) => uses.iter().step_by(SAMPLE).collect(),
    };
    let mut compared = 0;
    for uses in chosen.chunks(6) {
        let text = operations::program(uses);
        compared += usize::from(of_program(&text, &DIMS, &LENGTHS, 101));
    }
    let all = chosen.len().div_ceil(6);
    assert!(
        4 * compared >= 3 * all,
        "{compared} of {all} have a gradient"
    );
}

#[test]
fn gradients_of_random_programs_are_the_oracles() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let traits = Traits {
            trees: rng.one_in(2),
            ragged: rng.one_in(2),
            ..Traits::default()
        };
        let program = RandomProgram::with(traits, &mut rng);
        of_program(&program.text, &program.dims, &programs::LENGTHS, seed);
    }
}

/// Some instances of a program with random weights; whether all of it has a gradient.
#[track_caller]
fn of_program(text: &str, dims: &[(&str, u64)], lengths: &[usize], seed: u64) -> bool {
    let mut rng = Rng::new(seed);
    let model = Model::from_text(text, dims, &mut rng);
    let mut instances = Instances::new(&model.program, 4);
    instances.lengths_from(lengths);
    let instances: Vec<Json> = (0..3)
        .map(|index| {
            let shape = Shape::nth(index, 4, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let Some(case) = Case::new(model, &instances) else {
        return false;
    };
    let outcome = case.run("model.coh", "g", &["--entry", "loss"]);
    if outcome.stderr.contains("no gradient goes through") {
        return false;
    }
    // Of what forward cannot be compiled there is nothing to compare; `operations` is about that.
    let forward = || {
        let run = BatchRun::new(&case.path("model.coh")).weights(&case.model.weights_path);
        run.args(&["--entry", "loss"]).run(&case.input)
    };
    if outcome.code == 2 && forward().code == 2 {
        return false;
    }
    if let Err(problem) = panic::catch_unwind(panic::AssertUnwindSafe(|| case.compare(&[]))) {
        eprintln!(
            "seed {seed} of the program\n{text}\nand the input\n{}",
            case.input
        );
        panic::resume_unwind(problem);
    }
    true
}
