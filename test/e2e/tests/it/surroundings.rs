//! What a run takes from around it, and what it leaves there: names of files, pipes, numbers of the command
//! line, the temporary folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cohort_e2e::BatchRun;
use cohort_e2e::tools::tool;
use cohort_e2e::weights::{Weights, weights_bytes};
use cohort_oracle::Tensor;
use tempfile::TempDir;

const TWICE: &str = "fn main(x: f32) -> f32 { x * 2.0 }\n";
const WEIGHED: &str = "param w: f32[2]\nfn main(x: f32) -> f32 { x * sum(w) }\n";
const INPUT: &str = "{\"x\": 1}\n";

fn folder_with(name: &str, text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join(name), text).expect("the temporary folder is writable");
    folder
}

#[test]
fn numbers_that_no_machine_has_are_usage_errors() {
    let folder = folder_with("model.coh", TWICE);
    let run = || BatchRun::new(&folder.path().join("model.coh"));
    for arguments in [
        ["--threads", "30000"],
        ["--tolerance", "nan"],
        ["--benchmark-repetitions", "100000000000000000000"],
    ] {
        let outcome = run().args(&arguments).run(INPUT).expect_code(2);
        outcome.expect_message(&[arguments[0]]);
    }
    // So many can be asked for; what is kept of each run is not reserved before.
    let many = ["--benchmark-repetitions", "1000000000000000000"];
    let outcome = run().args(&many).args(&["--max-run-seconds", "2"]);
    let outcome = outcome.run(INPUT).expect_code(1);
    outcome.expect_message(&["--max-run-seconds"]);
}

#[test]
fn a_file_is_what_its_name_says() {
    let folder = folder_with("model.coh", TWICE);
    let at = |name: &str| folder.path().join(name);
    let artifact = at("model.cohort");
    let arguments = [
        at("model.coh").into(),
        "--emit=artifact".into(),
        "-o".into(),
    ];
    let arguments = [&arguments[..], &[artifact.clone().into()]].concat();
    cohort_e2e::tools::run("batch-opt", &arguments, "").expect_code(0);
    BatchRun::new(&artifact).run(INPUT).expect_code(0);
    fs::copy(&artifact, at("evil.coh")).expect("the temporary folder is writable");
    let refused = |path: &Path| BatchRun::new(path).run(INPUT).expect_code(2);
    refused(&at("evil.coh")).expect_message(&["holds an artifact", ".cohort"]);
    fs::copy(&artifact, at("evil.mlir")).expect("the temporary folder is writable");
    refused(&at("evil.mlir"));
    fs::write(at("ir.mlir"), "module {}").expect("the temporary folder is writable");
    refused(&at("ir.mlir")).expect_message(&["--allow-ir"]);
}

#[test]
fn weights_come_through_a_pipe() {
    let folder = folder_with("model.coh", WEIGHED);
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "no mkfifo");
    let weights = Weights::from([("w".to_owned(), Tensor::f32(&[2], vec![1.0, 2.5]))]);
    let to = pipe.clone();
    let writer = std::thread::spawn(move || fs::write(to, weights_bytes(&weights)));
    let run = BatchRun::new(&folder.path().join("model.coh")).weights(&pipe);
    let outcome = run.run(INPUT).expect_code(0);
    assert_eq!(outcome.lines(), ["{\"id\": 1, \"output\": 3.5}"]);
    assert!(writer.join().is_ok_and(|written| written.is_ok()));
}

#[test]
fn names_of_tensors_reach_the_terminal_escaped() {
    let folder = folder_with("model.coh", WEIGHED);
    let tensor = || Tensor::f32(&[2], vec![1.0, 2.5]);
    let red = "w\u{1b}[31mred";
    let weights = Weights::from([("w".to_owned(), tensor()), (red.to_owned(), tensor())]);
    let path = folder.path().join("w.safetensors");
    fs::write(&path, weights_bytes(&weights)).expect("the temporary folder is writable");
    let run = BatchRun::new(&folder.path().join("model.coh")).weights(&path);
    let outcome = run.run(INPUT).expect_code(2).expect_message(&["red"]);
    assert!(!outcome.stderr.contains('\u{1b}'), "{}", outcome.stderr);
}

#[test]
fn a_thousand_unbound_dims_are_told_in_part() {
    let dims: Vec<String> = (0..1000).map(|at| format!("D{at}")).collect();
    let params: String = (0..1000)
        .map(|at| format!("param p{at}: f32[D{at}]\n"))
        .collect();
    let text = format!("dim {}\n{params}{TWICE}", dims.join(", "));
    let folder = folder_with("model.coh", &text);
    let outcome = BatchRun::new(&folder.path().join("model.coh")).run(INPUT);
    let outcome = outcome.expect_code(2).expect_message(&["D0", " more"]);
    assert!(outcome.stderr.len() < 50_000, "{}", outcome.stderr.len());
}

/// Nothing but what it compiled, which is kept only where that is wanted.
#[test]
fn a_run_leaves_nothing_behind() {
    let folder = folder_with("model.coh", TWICE);
    let empty = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new(tool("batch-run"))
        .arg(folder.path().join("model.coh"))
        .envs(["HOME", "TMPDIR", "XDG_CACHE_HOME"].map(|name| (name, empty.path())))
        .env("COHORT_CACHE", "")
        .current_dir(empty.path())
        .stdin(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    let left = fs::read_dir(empty.path()).expect("the folder is there");
    assert_eq!(left.count(), 0);
}
