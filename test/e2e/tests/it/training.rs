//! What training asks of `batch-run`: another entry, gradients, other random numbers.

use std::fs;
use std::path::PathBuf;

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::tools::run;
use cohort_e2e::weights::write_weights;
use cohort_e2e::{BatchRun, Model, Rng};
use cohort_oracle::{Data, Tensor, read_weights};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::language::check;

/// A program, its weights and what runs leave.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new(text: &str, weights: &[(&str, Tensor)]) -> Files {
        let files = Files {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        fs::write(files.path("model.coh"), text).expect("the temporary folder is writable");
        let weights = weights
            .iter()
            .map(|(name, tensor)| (name.to_string(), tensor.clone()));
        write_weights(&files.path("weights.safetensors"), &weights.collect());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A run with an option for a file of each name.
    fn batch_run(&self, files: &[(&str, &str)]) -> BatchRun {
        let run = BatchRun::new(&self.path("model.coh")).weights(&self.path("weights.safetensors"));
        let files = files.iter();
        files.fold(run, |run, (option, name)| {
            run.arg(option).arg(self.path(name))
        })
    }

    /// The gradient of a parameter.
    #[track_caller]
    fn gradient(&self, parameter: &str) -> (Vec<usize>, Vec<f64>) {
        let file = read_weights(&self.path("g.safetensors")).expect("the gradients can be read");
        match &file[parameter] {
            Tensor {
                shape,
                data: Data::F32(data),
                ..
            } => (shape.clone(), data.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn lines(&self, name: &str) -> Vec<Json> {
        let text = fs::read_to_string(self.path(name)).expect("the file was written");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }
}

const GRADIENTS: (&str, &str) = ("--gradients", "g.safetensors");

/// The loss of a linear model; of its output nobody takes the last parameter.
const LINEAR: &str = "dim D
    param w: f32[D]  param unused: f32[D, 2]  param shift: i32[1]
    fn predict(x: f32[D]) -> f32 { x @ w + f32(shift[0]) }
    fn main(x: f32[D]) -> f32[D] { x * predict(x) }
    fn loss(x: f32[D], y: f32) -> (f32, i32) { (mse(predict(x), y), i32(y)) }
    fn root(x: f32[D], y: f32) -> f32 { log(predict(x)) }";

fn linear() -> Files {
    Files::new(
        LINEAR,
        &[
            ("w", Tensor::f32(&[2], vec![2.0, -1.0])),
            ("unused", Tensor::f32(&[2, 2], vec![1.0; 4])),
            ("shift", Tensor::i32(&[1], vec![1])),
        ],
    )
}

#[test]
fn the_gradient_is_that_of_the_sum_of_losses() {
    let files = linear();
    let outcome = files
        .batch_run(&[GRADIENTS, ("--input-gradients", "inputs.jsonl")])
        .args(&["--oracle", "--entry", "loss"])
        .run("{\"id\":\"a\",\"x\":[1,1],\"y\":0}\n{\"id\":\"b\",\"x\":[0,2],\"y\":1}\n")
        .expect_code(0);
    assert_eq!(
        outcome.lines(),
        [
            r#"{"id":"a","output":[4.0,0]}"#,
            r#"{"id":"b","output":[4.0,1]}"#
        ]
    );
    // 2 * 2 * [1, 1] + 2 * -2 * [0, 2]
    assert_eq!(files.gradient("w"), (vec![2], vec![4.0, -4.0]));
    assert_eq!(files.gradient("unused"), (vec![2, 2], vec![0.0; 4]));
    let written = read_weights(&files.path("g.safetensors")).expect("the gradients can be read");
    assert!(!written.contains_key("shift"), "integers have no gradient");
    assert_eq!(
        files.lines("inputs.jsonl"),
        [
            json!({"id": "a", "gradient": {"x": [8.0, -4.0], "y": -4.0}}),
            json!({"id": "b", "gradient": {"x": [-8.0, 4.0], "y": 4.0}}),
        ]
    );
}

#[test]
fn an_instance_that_fails_or_has_no_finite_loss_adds_nothing() {
    let files = linear();
    let input = "{\"id\":\"fine\",\"x\":[1,1],\"y\":0}
        {\"id\":\"negative\",\"x\":[0,9],\"y\":0}
        {\"id\":\"zero\",\"x\":[0,1],\"y\":0}
        {\"id\":\"wrong\",\"x\":[0,1,2],\"y\":0}
        no instance\n";
    let outcome = files
        .batch_run(&[GRADIENTS, ("--input-gradients", "inputs.jsonl")])
        .args(&["--oracle", "--entry", "root"])
        .run(input)
        .expect_code(1);
    let alone = files.gradient("w");
    assert_eq!(alone, (vec![2], vec![0.5, 0.5]));
    let kinds = |lines: &[Json]| -> Vec<String> {
        let kinds = lines.iter().map(|line| line["error"]["kind"].to_string());
        kinds.collect()
    };
    let expected = [
        "null",
        "\"loss_not_finite\"",
        "\"loss_not_finite\"",
        "\"bad_input\"",
        "\"bad_input\"",
    ];
    let records = outcome.output.lines();
    let records: Vec<Json> = records
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(kinds(&records), expected);
    assert_eq!(kinds(&files.lines("inputs.jsonl")), expected);
}

#[test]
fn cotangents_weigh_what_is_no_single_number() {
    let files = linear();
    let cotangents = "{\"id\":\"b\",\"cotangent\":[0,1]}\n{\"id\":\"a\",\"cotangent\":[1,1]}\n";
    fs::write(files.path("c.jsonl"), cotangents).expect("the folder is writable");
    let run = |input: &str| {
        files
            .batch_run(&[GRADIENTS, ("--cotangents", "c.jsonl")])
            .arg("--oracle")
            .run(input)
    };
    let input = "{\"id\":\"a\",\"x\":[1,1]}\n{\"id\":\"b\",\"x\":[0,2]}\n";
    run(input).expect_code(0);
    // 2 * [1, 1] + 2 * [0, 2]
    assert_eq!(files.gradient("w"), (vec![2], vec![2.0, 6.0]));
    let without = run(&format!("{input}{{\"id\":\"c\",\"x\":[1,1]}}\n")).expect_code(1);
    assert!(
        without
            .output
            .contains("no cotangent was given for the instance")
    );
    assert_eq!(files.gradient("w"), (vec![2], vec![2.0, 6.0]));

    for (text, message) in [
        ("{\"id\":\"a\"}", "no member `cotangent`"),
        (
            "{\"id\":\"a\",\"cotangent\":1}\n{\"id\":\"a\",\"cotangent\":1}",
            "two",
        ),
        ("nothing", "not valid JSON"),
    ] {
        fs::write(files.path("c.jsonl"), text).expect("the folder is writable");
        run(input).expect_code(2).expect_message(&[message]);
    }
}

#[test]
fn what_cannot_be_differentiated_is_refused() {
    let files = linear();
    let run = |arguments: &[&str], files_of: &[(&str, &str)]| {
        files
            .batch_run(files_of)
            .args(arguments)
            .run("")
            .expect_code(2)
    };
    let no_loss = run(&[], &[GRADIENTS]);
    no_loss.expect_message(&["E0211", "`main` does not give a loss", "model.coh:4"]);
    let cotangents = [("--cotangents", "c.jsonl")];
    run(&["--oracle"], &cotangents).expect_message(&["say by `--gradients`"]);
    let no_loss = run(&["--oracle"], &[GRADIENTS]);
    no_loss.expect_message(&["E0211", "`main` does not give a loss", "model.coh:4"]);
    let missing = run(&["--oracle", "--entry", "los"], &[GRADIENTS]);
    missing.expect_message(&["E0208", "the program has no `los`", "did you mean `loss`"]);
    let same = [GRADIENTS, ("--input-gradients", "g.safetensors")];
    run(&["--oracle", "--entry", "loss"], &same).expect_message(&["--gradients"]);
}

/// One function has a phase; the other calls it and decides.
const TWO: &str = "dim H
    param w: f32[H, H]
    fn main(x: f32[H], k: i32) -> f32[H] { let y = tanh(x @ w); phase; y * f32(k) }
    fn other(y: f32[n, H]) -> (f32[n, H], f32) {
        let z = y @ w;
        let m = main(z[0], 3);
        (z, if sum(m) > 0.0 { sum(m) } else { 0.5 })
    }";

#[test]
fn another_function_runs_in_place_of_main() {
    let model = Model::from_text(TWO, &[("H", 3)], &mut Rng::new(7));
    let input =
        "{\"y\":[[1,2,3]]}\n{\"y\":[[-1,0.5,3],[0,1,0]]}\n{\"y\":[]}\n{\"x\":[1,2,3],\"k\":1}\n";
    let entry = ["--entry", "other"];
    let oracle = model.batch_run().args(&entry).arg("--oracle").run(input);
    let oracle = oracle.expect_code(1).lines();
    assert!(oracle[3].contains("`other` has no parameter"), "{oracle:?}");
    let expected = &oracle[..3];
    let input: String = input
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    let compiled = model.batch_run().args(&entry).run(&input).expect_code(1);
    compare_records(expected, &compiled.lines(), Closeness::EachNumber(1e-5)).unwrap();

    let artifact = model.compile(&entry);
    let lines = artifact.batch_run().run(&input).expect_code(1).lines();
    assert_eq!(lines, compiled.lines());
    let again = artifact.batch_run().args(&entry).run(&input).expect_code(2);
    again.expect_message(&["`--entry` is for the compiler"]);
    let generic = run(
        "batch-opt",
        &[model.source.clone().into(), "--entry=layernorm".into()],
        "",
    );
    generic.expect_code(2).expect_message(&["two functions"]);
}

#[test]
fn losses_of_the_prelude() {
    check(
        "dim C
        param b: f32[C]
        fn main(x: f32[C], k: i32, xs: f32[n, C], ks: i32[n]) -> (f32, f32[n], f32, f32, f32) {
          (cross_entropy(x, k), cross_entropy(xs, ks), mse(x[0], 2.0), mse(x, b), mse(xs, xs + 1))
        }",
        &[("C", 3)],
        &[
            r#"{"x":[1,2,-3],"k":1,"xs":[[0,0,0],[100,1,2]],"ks":[0,2]}"#,
            r#"{"x":[1000,0,-1000],"k":2,"xs":[[1,2,3]],"ks":[2]}"#,
            r#"{"x":[1,2,3],"k":3,"xs":[[1,2,3]],"ks":[2]}"#,
            r#"{"x":[1,2,3],"k":0,"xs":[[1,2,3]],"ks":[3]}"#,
            r#"{"x":[1,2,3],"k":0,"xs":[[1,2,3]],"ks":[-1]}"#,
        ],
    );
}

#[test]
fn a_draw_gives_every_instance_other_random_numbers_whatever_its_batch() {
    let text = "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D], y: f32[D]) -> (f32[n, D], f32[D], f32) {
          (dropout(x, 0.5, 1), dropout(tanh(y @ w), 0.25, 2), random(3))
        }";
    let model = Model::from_text(text, &[("D", 5)], &mut Rng::new(8));
    let line = |k: usize| format!("{{\"x\":[[1,2,3,4,5],[1,1,1,1,{k}]],\"y\":[1,2,3,4,5]}}\n");
    let input: String = (0..9).map(line).collect();
    let run = |arguments: &[&str]| {
        let run = model.batch_run().args(arguments).run(&input);
        run.expect_code(0).lines()
    };
    let mut seen = Vec::new();
    for draw in ["0", "1", "2", "18446744073709551615"] {
        let expected = run(&["--oracle", "--draw", draw]);
        let batched = run(&["--draw", draw]);
        compare_records(&expected, &batched, Closeness::EachNumber(1e-6)).unwrap();
        assert_eq!(batched, run(&["--draw", draw, "--batch", "2"]));
        assert_eq!(batched, run(&["--draw", draw, "--no-batch"]));
        assert!(!seen.contains(&batched), "two draws are the same");
        seen.push(batched);
    }
    assert_eq!(seen[0], run(&[]), "no draw is draw 0");
}
