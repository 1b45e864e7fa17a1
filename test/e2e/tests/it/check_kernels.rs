//! `--check-kernels`: launches compared with what their kernels mean at level 2, and the first that is
//! wrong named.

use std::fs;
use std::path::Path;

use cohort_e2e::tools::{self, BatchRun, Outcome};
use cohort_e2e::{Model, Rng};

use crate::models::{MODELS, model_case, to_text};

/// Every kernel was checked, and is right.
#[track_caller]
fn expect_right(outcome: Outcome) {
    let outcome = outcome
        .expect_code(0)
        .expect_message(&["launches are right"]);
    assert!(
        !outcome.stderr.contains("was not checked"),
        "{}",
        outcome.describe()
    );
}

#[test]
fn launches_of_every_model_are_right() {
    let mut rng = Rng::new(8);
    for case in MODELS {
        let model = case.with_sizes([5, 3, 28, 3], &mut rng);
        let instances = case.instances(&model, 6, &mut rng);
        expect_right(
            model
                .batch_run()
                .arg("--check-kernels")
                .run(&to_text(&instances)),
        );
    }
}

/// Numbers that cancel: what is left of their sum is as large as what any order of it rounds away.
#[test]
fn sums_that_almost_cancel_are_right() {
    let text = "fn main(x: f32[n], w: f32[n]) -> (f32, f32) { (x @ w, mean(x * w)) }";
    let mut rng = Rng::new(10);
    let model = Model::from_text(text, &[], &mut rng);
    let instance = |rng: &mut Rng| {
        let mut x: Vec<f64> = (0..18)
            .map(|_| f64::from(rng.signed_unit() as f32))
            .collect();
        let mut w: Vec<f64> = (0..18)
            .map(|_| f64::from(rng.signed_unit() as f32))
            .collect();
        let sum: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
        x.push(f64::from(-sum as f32));
        w.push(1.0);
        serde_json::json!({ "x": x, "w": w })
    };
    let instances: Vec<_> = (0..60).map(|_| instance(&mut rng)).collect();
    let call = model.batch_run().arg("--check-kernels");
    expect_right(call.run(&to_text(&instances)));
}

#[test]
fn so_are_those_of_other_ways_to_run() {
    let mut rng = Rng::new(9);
    let case = model_case("encoder");
    let model = case.with_sizes([5, 8, 28, 3], &mut rng);
    let input = to_text(&case.instances(&model, 6, &mut rng));
    for way in [
        &["--no-batch"][..],
        &["--threads", "2"],
        &["--without", "ragged-storage"],
        &["--without", "gather-fusion"],
        &["--without", "fuse-rows,hoist-constants"],
        &["--granularity", "operator"],
    ] {
        expect_right(
            model
                .batch_run()
                .arg("--check-kernels")
                .args(way)
                .run(&input),
        );
    }
}

#[test]
fn so_are_those_of_backward() {
    let text = "dim H
        param w: f32[H, H]
        type Tree = Leaf(f32[H]) | Node(Tree, Tree)
        fn up(t: Tree) -> f32[H] { match t { Leaf(x) => tanh(x @ w), Node(a, b) => tanh((up(a) * up(b)) @ w) } }
        fn loss(t: Tree, y: f32[n, H]) -> f32 { sum(softmax(y @ w) * 0.5) + mse(up(t), sum(y, axis = 0)) }";
    let text = format!("{text}\n        fn main(t: Tree) -> f32[H] {{ up(t) }}");
    let model = Model::from_text(&text, &[("H", 3)], &mut Rng::new(1));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = r#"{"t": {"Node": [{"Leaf": [[1, 2, 3]]}, {"Leaf": [[0, 1, 0.5]]}]}, "y": [[1, 2, 3], [0, 1, 1]]}
{"t": {"Leaf": [[0.1, 2, 1]]}, "y": [[1, 0, 3]]}
"#;
    let run = model
        .batch_run()
        .args(&["--check-kernels", "--entry", "loss", "--gradients"]);
    expect_right(run.arg(folder.path().join("g.safetensors")).run(input));
}

/// A kernel's code, with one operation replaced, stands beside the kernel that it was made of.
#[test]
fn the_first_wrong_launch_is_named() {
    let text = "fn main(x: f32[4]) -> f32[4] { x * 2.0 + 1.0 }";
    let model = Model::from_text(text, &[], &mut Rng::new(1));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compile = |from: &Path, option: &str| {
        let arguments = [from.into(), option.into()];
        tools::run("batch-opt", &arguments, "")
            .expect_code(0)
            .output
    };
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("the folder is writable");
        path
    };
    let run = |path: &Path| {
        let run = BatchRun::new(path).args(&["--allow-ir", "--check-kernels"]);
        run.run("{\"x\": [1, 2, 3, 4]}\n")
    };
    let batched = compile(&model.source, "--emit=batched");
    let right = write("right.mlir", &batched);
    expect_right(run(&right));
    let planned = write("planned.mlir", &compile(&right, "--plan-kernels"));
    let lowered = compile(&planned, "--lower-kernels");
    let code = lowered
        .split_once("  func.func @main(")
        .and_then(|(before, _)| before.split_once('\n'))
        .map(|(_module, kernel)| kernel)
        .expect("the kernel comes first")
        .replace("main_0", "main_0_scalars_1");
    let wrong = code.replace("arith.addf", "arith.subf");
    assert_ne!(code, wrong);
    let record = batched.replace("cfb.record @main_0", "cfb.record @main_0_scalars_1");
    let with = |code: &str| record.replacen('\n', &format!("\n{code}"), 1);
    expect_right(run(&write("same.mlir", &with(&code))));
    let outcome = run(&write("wrong.mlir", &with(&wrong)));
    outcome.expect_code(1).expect_message(&[
        "error: kernel `main_0_scalars_1`",
        "is wrong in launch 0, row 0: element 3 of result 0 is 7e0, and should be 9e0",
        "operand 0: from row 0, 4 numbers up to 4.000e0",
    ]);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let model = model_case("treelstm").shipped();
    for (arguments, message) in [
        (
            &["--device", "gpu-sim"][..],
            "`--check-kernels` is for `--device cpu`",
        ),
        (&["--oracle"], "cannot be used with"),
        (&["--tolerance", "nan"], "tolerance"),
    ] {
        let run = model
            .batch_run()
            .arg("--check-kernels")
            .args(arguments)
            .run("");
        run.expect_code(2).expect_message(&[message]);
    }
    let compiled = model.compile(&[]);
    let run = compiled.batch_run().arg("--check-kernels").run("");
    run.expect_code(2)
        .expect_message(&["is code alone; give the program"]);
}
