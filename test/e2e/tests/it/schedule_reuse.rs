//! Schedules are used again for instances of the same structure: nothing but the time shows it.

use std::fs;

use cohort_e2e::model::Compiled;
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::models::{MODELS, to_text};

/// Numbers that choose rows, alone and in arrays, numbers that decide and are computed with, tensors of the instance
/// between them, and a result with parts.
const TEXT: &str = "dim V, H
  param emb: f32[V, H]  param w: f32[H, H]  param b: f32[H]
  type Tree = Leaf(i32) | Input(f32[H]) | Node(Tree, Tree) | Times(i32, Tree) | Words([i32])
  type Both = Both(f32[H], [f32[H]])
  fn cell(t: Tree) -> f32[H] {
    match t {
      Leaf(v) => tanh(emb[v] @ w + b),
      Input(x) => x,
      Node(l, r) => tanh(cell(l) @ w + cell(r)),
      Times(n, of) => fold(range(n), cell(of), |h, k| tanh(h @ w) + f32(k)),
      Words(ws) => sum(map(ws, |v| emb[v])),
    }
  }
  fn main(t: Tree, v: i32, n: i32) -> (Both, f32[H]) {
    let h = cell(t);
    (Both(tanh(h @ w + emb[v]), map(range(n), |k| h * f32(k))), emb[v])
  }";

const ROWS: u64 = 9;

/// How often a structure must have come before it is kept.
const WORTH: usize = 64;

/// A tree of the shape that `shape` draws, with other numbers by `words`.
fn tree(depth: usize, shape: &mut Rng, words: &mut Rng) -> String {
    match shape.between(0, if depth == 0 { 2 } else { 6 }) {
        0 => format!("{{\"Leaf\": [{}]}}", words.below(ROWS as usize)),
        1 => format!("{{\"Input\": [[{}, 0.5, -0.25]]}}", words.signed_unit()),
        2 => {
            let count = shape.between(0, 4);
            let words: Vec<usize> = (0..count).map(|_| words.below(ROWS as usize)).collect();
            format!("{{\"Words\": [{words:?}]}}")
        }
        3 => format!(
            "{{\"Times\": [{}, {}]}}",
            shape.between(0, 4),
            tree(depth - 1, shape, words)
        ),
        _ => {
            let left = tree(depth - 1, shape, words);
            format!("{{\"Node\": [{left}, {}]}}", tree(depth - 1, shape, words))
        }
    }
}

/// Instances of few structures in turn; the arguments come in one order or another. Of some a number chooses no row.
fn instances(count: usize) -> String {
    let mut words = Rng::new(5);
    let lines = (0..count).map(|number| {
        let structure = number % 7;
        let tree = tree(4, &mut Rng::new(structure as u64 + 1), &mut words);
        let word = match number % 23 {
            22 => -1,
            21 => ROWS as i64,
            _ => words.below(ROWS as usize) as i64,
        };
        let n = structure % 3;
        match number % 2 {
            0 => format!("{{\"id\": {number}, \"t\": {tree}, \"v\": {word}, \"n\": {n}}}\n"),
            _ => format!("{{\"n\": {n}, \"v\": {word}, \"t\": {tree}, \"id\": {number}}}\n"),
        }
    });
    lines.collect()
}

/// What a run writes, and its `schedule_reuse` of the statistics.
fn run(compiled: &Compiled<'_>, arguments: &[&str], input: &str, code: i32) -> (Vec<String>, Json) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let call = compiled
        .batch_run()
        .args(arguments)
        .arg("--stats")
        .arg(&path);
    let lines = call.run(input).expect_code(code).lines();
    let text = fs::read_to_string(&path).expect("statistics");
    let stats: Json = serde_json::from_str(&text).expect("statistics are JSON");
    (lines, stats["schedule_reuse"].clone())
}

fn count(reuse: &Json, name: &str) -> u64 {
    reuse[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no `{name}` in {reuse}"))
}

#[test]
fn structures_are_reused_with_other_numbers_and_tensors() {
    let model = Model::from_text(TEXT, &[("V", ROWS), ("H", 3)], &mut Rng::new(3));
    let compiled = model.compile(&[]);
    // Of two threads, each meets half.
    let input = instances(2800);
    let (expected, without) = run(&compiled, &["--without", "schedule-reuse"], &input, 1);
    assert_eq!(count(&without, "reused"), 0);
    assert!(without["unused"].is_string(), "{without}");
    for arguments in [
        &[][..],
        &["--batch", "1"],
        &["--batch", "7", "--keep-memory", "0"],
        &["--batch", "20", "--no-sharing"],
        &["--threads", "2", "--batch", "10"],
        &["--scheduler", "agenda"],
        &["--granularity", "instance"],
    ] {
        let (lines, reuse) = run(&compiled, arguments, &input, 1);
        assert_eq!(lines, expected, "{arguments:?}");
        assert!(count(&reuse, "reused") > 1400, "{arguments:?}: {reuse}");
        assert_eq!(count(&reuse, "reused") + count(&reuse, "recorded"), 2800);
        assert!(
            reuse["unused"].is_null() && count(&reuse, "kept") >= 3,
            "{reuse}"
        );
    }
    let (lines, reuse) = run(&compiled, &["--no-batch"], &input, 1);
    assert_eq!(lines, expected);
    assert_eq!(count(&reuse, "reused"), 0);
    compare_records(
        &model.oracle_lines(&input),
        &expected,
        Closeness::EachNumber(1e-5),
    )
    .expect("the oracle finds the same");
}

/// A batch may have no row at all of what a recording knows as the instance's first row.
#[test]
fn tensors_without_rows_are_recorded_too() {
    let model = Model::from_text(
        "param w: f32[2, 3]  fn main(x: f32[n, 2], y: f32[3], ks: [i32]) -> (f32[_, 2], f32[_, 3], f32[3]) {
           (x, tanh(x @ w), y + sum(map(ks, |k| y * f32(k))))
         }",
        &[],
        &mut Rng::new(3),
    );
    let compiled = model.compile(&[]);
    let empty = "{\"x\": [], \"y\": [1, 2, 3], \"ks\": [2, 3]}\n";
    let full = "{\"x\": [[1, 2], [3, 4]], \"y\": [4, 5, 6], \"ks\": []}\n";
    let input = empty.repeat(WORTH + 3) + &full.repeat(WORTH + 1) + empty + full;
    let (expected, _) = run(&compiled, &["--without", "schedule-reuse"], &input, 0);
    for batch in ["1", "2", "100"] {
        let (lines, reuse) = run(&compiled, &["--batch", batch], &input, 0);
        assert_eq!(lines, expected, "--batch {batch}");
        assert!(count(&reuse, "reused") >= 3, "{reuse}");
    }
}

#[test]
fn memory_of_schedules_is_bounded() {
    let model = Model::from_text(TEXT, &[("V", ROWS), ("H", 3)], &mut Rng::new(3));
    let compiled = model.compile(&[]);
    let input = instances(900);
    let (expected, all) = run(&compiled, &[], &input, 1);
    for bytes in [1, 500, 4000, 8000] {
        let memory = bytes.to_string();
        let (lines, reuse) = run(&compiled, &["--schedule-memory", &memory], &input, 1);
        assert_eq!(lines, expected);
        assert!(count(&reuse, "kept_bytes") <= bytes, "{reuse}");
        assert!(count(&reuse, "reused") <= count(&all, "reused"), "{reuse}");
    }
}

/// Limits hold for instances whose calls were recorded before as for others.
#[test]
fn limits_do_not_depend_on_what_came_before() {
    let model = Model::from_text(TEXT, &[("V", ROWS), ("H", 3)], &mut Rng::new(3));
    let compiled = model.compile(&[]);
    let input = instances(10 * WORTH);
    for limit in [
        ["--max-memory", "1500"],
        ["--max-nodes", "12"],
        ["--max-steps", "3"],
    ] {
        let with = compiled.batch_run().args(&limit).run(&input);
        let without = ["--without", "schedule-reuse"];
        let without = compiled.batch_run().args(&limit).args(&without).run(&input);
        assert_eq!(with.lines(), without.lines(), "{limit:?}");
    }
}

/// Of the examples: each instance comes often, as in epochs.
#[test]
fn examples_are_the_same_again() {
    let mut rng = Rng::new(8);
    for case in MODELS {
        let model = case.with_sizes([9, 3, 5, 2], &mut rng);
        let compiled = model.compile(&[]);
        let once = case.instances(&model, 3, &mut rng);
        let input = to_text(&once).repeat(WORTH + 1);
        let without = ["--without", "schedule-reuse", "--batch", "5"];
        let expected = compiled.batch_run().args(&without).run(&input).lines();
        let (lines, reuse) = run(&compiled, &["--batch", "5"], &input, 0);
        assert_eq!(lines, expected, "{}", case.name);
        let is_unused = reuse["unused"].is_string();
        assert_eq!(
            count(&reuse, "reused") == 0,
            is_unused,
            "{}: {reuse}",
            case.name
        );
    }
}
