//! Which scheduler runs is chosen while instances run, or by an earlier run, and shows in no result.

use std::fs;
use std::path::Path;

use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

/// Rows of turns, each of a length of its own, between calls of another kernel: these lie at all depths, and
/// looking ahead puts many of them together.
const TURNS: &str = "dim H
  param u: f32[H, H]  param w: f32[H, H]
  fn main(x: f32[H], ns: [i32]) -> f32[H] {
    for n in ns with (h = x) {
      let (g, _) = while k < n with (g = h, k = 0) { (tanh(g @ u), k + 1) };
      sigmoid(g @ w)
    }
  }";

fn turns() -> Model {
    Model::from_text(TURNS, &[("H", 4)], &mut Rng::new(3))
}

fn input(instances: usize) -> String {
    let mut rng = Rng::new(8);
    (0..instances)
        .map(|_| {
            let x: Vec<f32> = (0..4).map(|_| rng.signed_unit() as f32).collect();
            let ns: Vec<usize> = (0..1 + rng.below(7)).map(|_| rng.below(4)).collect();
            format!("{{\"x\": {x:?}, \"ns\": {ns:?}}}\n")
        })
        .collect()
}

/// The lines of a run, and its statistics, which stay in the file.
fn run(model: &Model, arguments: &[&str], stats: &Path, input: &str) -> (Vec<String>, Json) {
    let call = model.batch_run().args(arguments).arg("--stats").arg(stats);
    let outcome = call.run(input).expect_code(0);
    let text = fs::read_to_string(stats).expect("statistics");
    let json = serde_json::from_str(&text).expect("statistics are JSON");
    (outcome.lines(), json)
}

#[test]
fn what_is_measured_changes_no_bit_and_is_told() {
    let (model, input) = (turns(), input(8000));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let (expected, stats) = run(&model, &["--scheduler", "depth"], &path, &input);
    assert_eq!(stats["scheduler"]["used"], "depth");
    for arguments in [
        ["--batch", "32"],
        ["--in-flight", "20"],
        ["--batch", "500"],
        ["--threads", "2"],
    ] {
        let (lines, stats) = run(&model, &arguments, &path, &input);
        assert!(lines == expected, "{arguments:?} changed a bit");
        assert_eq!(stats["scheduler"]["asked"], "auto");
    }
    let (lines, stats) = run(&model, &["--batch", "16"], &path, &input);
    assert!(lines == expected);
    let scheduler = &stats["scheduler"];
    let measured = scheduler["measured"].as_array().expect("what was measured");
    assert_eq!(measured.len(), 2, "{scheduler}");
    for of in measured {
        assert!(of["seconds"].as_f64() > Some(0.0), "{scheduler}");
    }
    let sum = |name: &str| -> Option<u64> { measured.iter().map(|of| of[name].as_u64()).sum() };
    assert_eq!(sum("launches"), stats["kernel_launches"].as_u64());
    assert_eq!(sum("rows"), stats["rows"].as_u64());
    assert_eq!(sum("flushes"), stats["flushes"].as_u64());
    let why = scheduler["why"].as_str().unwrap_or_default();
    assert!(why.contains("pairs of flushes"), "{why}");
}

#[test]
fn a_small_run_goes_by_depth() {
    // Among the calls of many more, to search for launches to save costs more than it saves.
    let (model, input) = (turns(), input(12));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let (_, by_depth) = run(&model, &["--scheduler", "depth"], &path, &input);
    let (_, ahead) = run(&model, &["--scheduler", "lookahead"], &path, &input);
    assert!(ahead["kernel_launches"].as_u64() < by_depth["kernel_launches"].as_u64());
    let (_, auto) = run(&model, &[], &path, &input);
    assert_eq!(auto["kernel_launches"], by_depth["kernel_launches"]);
    let why = auto["scheduler"]["why"].as_str().unwrap_or_default();
    assert!(why.contains("too little was computed"), "{why}");
}

#[test]
fn an_earlier_run_says_which_scheduler_is_used() {
    let (model, input) = (turns(), input(50));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [earlier, path] = ["earlier.json", "stats.json"].map(|name| folder.path().join(name));
    for scheduler in ["depth", "agenda", "lookahead"] {
        let given = ["--scheduler", scheduler];
        let (expected, before) = run(&model, &given, &earlier, &input);
        let guided = [
            "--profile-guided",
            earlier.to_str().expect("a path in UTF-8"),
        ];
        let (lines, stats) = run(&model, &guided, &path, &input);
        assert_eq!(lines, expected);
        assert_eq!(stats["kernel_launches"], before["kernel_launches"]);
        assert_eq!(stats["scheduler"]["used"], scheduler);
        assert_eq!(stats["scheduler"]["asked"], "profile-guided");
    }
}

#[test]
fn statistics_of_another_program_are_refused() {
    let model = turns();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let guided = ["--profile-guided", path.to_str().expect("a path in UTF-8")];
    let refuse = |texts: &[&str]| {
        let call = model.batch_run().args(&guided);
        call.run(&input(1)).expect_code(2).expect_message(texts);
    };
    refuse(&["cannot read", "stats.json"]);
    fs::write(&path, "{\"instances\": 3}").expect("a file is written");
    refuse(&["expected statistics", "`kernels`"]);
    let other = "fn main(x: f32[4]) -> f32[4] { tanh(x) }";
    let other = Model::from_text(other, &[], &mut Rng::new(1));
    run(&other, &[], &path, "{\"x\": [1, 2, 3, 4]}\n");
    refuse(&["of another program", "missing: "]);
}
