//! A batch ends early where more instances would gain nothing, unless somebody asked for a number of them.

use std::fs;

use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

/// Each call makes a matrix of 64 KB, and reads few weights.
const MATRICES: &str = "dim H
  param w: f32[H, H]  param m0: f32[H, H]
  fn main(x: f32[H], n: i32) -> f32[H] {
    let (m, _) = while k < n with (m = m0 + x, k = 0) { (tanh(m @ w), k + 1) };
    x @ m
  }";

fn input(instances: usize) -> String {
    let mut rng = Rng::new(5);
    (0..instances)
        .map(|number| {
            let x: Vec<f32> = (0..128).map(|_| rng.signed_unit() as f32).collect();
            format!("{{\"x\": {x:?}, \"n\": {}}}\n", number % 5)
        })
        .collect()
}

fn run(model: &Model, arguments: &[&str], input: &str) -> (Vec<String>, Json, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let call = model.batch_run().args(arguments).arg("--stats").arg(&path);
    let outcome = call.run(input).expect_code(0);
    let text = fs::read_to_string(&path).expect("statistics");
    let json = serde_json::from_str(&text).expect("statistics are JSON");
    let said = outcome.stderr.clone();
    (outcome.lines(), json, said)
}

#[test]
fn rows_that_leave_the_caches_end_a_batch_unless_its_size_was_asked_for() {
    let model = Model::from_text(MATRICES, &[("H", 128)], &mut Rng::new(3));
    // 64 MiB of rows: several times what is enough with any cache.
    let input = input(512);
    let (expected, stats, _) = run(&model, &["--batch", "256"], &input);
    assert_eq!(stats["flushes"], 2);
    assert!(stats["batches"].is_null(), "{stats}");
    for arguments in [&["--explain"][..], &["--explain", "--threads", "2"]] {
        let (lines, stats, said) = run(&model, arguments, &input);
        assert!(lines == expected, "{arguments:?} changed a bit");
        let batches = &stats["batches"];
        assert!(batches["ended_early"].as_u64() > Some(0), "{stats}");
        assert!(stats["flushes"].as_u64() > Some(2), "{stats}");
        assert!(said.contains("more instances would gain nothing"), "{said}");
    }
    let (lines, stats, _) = run(&model, &["--in-flight", "256"], &input);
    assert!(lines == expected && stats["batches"].is_null(), "{stats}");
}

/// As above, and each step asks whether there is another.
const DECIDING: &str = "dim H
  param w: f32[H, H]  param m0: f32[H, H]
  fn main(x: f32[H], n: i32) -> f32[H] {
    let first = tanh((m0 + x) @ w);
    let (m, _) = while k < n && sum(x @ m) > -1e9 with (m = first, k = 0) { (tanh(m @ w), k + 1) };
    x @ m
  }";

#[test]
fn so_they_do_where_tensors_decide() {
    let model = Model::from_text(DECIDING, &[("H", 128)], &mut Rng::new(3));
    let input = input(256);
    let (expected, stats, _) = run(&model, &["--batch", "128"], &input);
    assert!(stats["batches"].is_null(), "{stats}");
    let most = stats["flushes"].as_u64();
    for threads in ["1", "2"] {
        let (lines, stats, said) = run(&model, &["--explain", "--threads", threads], &input);
        assert!(lines == expected, "{threads} threads changed a bit");
        assert!(
            stats["batches"]["ended_early"].as_u64() > Some(1),
            "{stats}"
        );
        assert!(stats["flushes"].as_u64() > most, "{stats}");
        assert!(said.contains("more instances would gain nothing"), "{said}");
    }
    // In turns, the number alive at once was asked for.
    let (lines, stats, _) = run(&model, &["--in-flight", "128"], &input);
    assert!(lines == expected && stats["batches"].is_null(), "{stats}");
}
