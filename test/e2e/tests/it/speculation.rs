//! On a device decisions are guessed, and nobody sees that: neither in results nor in errors, limits or what is shown.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

/// A tape that is read until a tensor says that it is enough; if none does, the tape is too short, and a
/// guess that it goes on is as wrong there as the program.
const TAPE: &str = "dim H
  param w: f32[H, H]  param e: f32[7, H]  param v: f32[H, 1]
  fn main(tape: [i32], enough: f32, most: i32) -> (f32[H], i32, [(i32, f32[H])]) {
    let (h, step, seen, _) =
      while go with (h = zeros([H]), step = 0, seen = [(0, zeros([H]))], go = true) {
        let h = tanh(h @ w + 2.0 * e[tape[step]]);
        let step = step + 1;
        let quotient = 60 / (most - step);
        (h, step, push(seen, (quotient, h)), sum(h @ v) < enough)
      };
    (h, step, seen)
  }";

/// Instances whose tapes are read up to `longest` symbols far, some of which have none left then.
fn tapes(count: usize, longest: usize, rng: &mut Rng) -> String {
    let lines = (0..count).map(|number| {
        let length = rng.between(1, longest);
        let tape: Vec<usize> = (0..length).map(|_| rng.below(7)).collect();
        let most = rng.between(2, 2 * longest);
        let enough = match rng.one_in(20) {
            true => "\"NaN\"".to_owned(),
            false => (1.5 * rng.signed_unit()).to_string(),
        };
        format!(
            "{{\"id\": {number}, \"tape\": {tape:?}, \"enough\": {enough}, \"most\": {most}}}\n"
        )
    });
    lines.collect()
}

fn speculation(stats: &Json) -> (u64, u64) {
    let count = |name: &str| stats["speculation"][name].as_u64().unwrap_or(0);
    (count("guesses"), count("wrong"))
}

/// Runs it on the simulator with guesses and without, in several ways, and compares what comes out to the bit; gives the
/// statistics of both, of the first way.
fn compare(model: &Model, input: &str, ways: &[&[&str]], code: i32) -> [Json; 2] {
    let compiled = model.compile(&["--gpu-arch", "sim"]);
    let run = |way: &[&str]| {
        let stats = std::env::temp_dir().join(format!(
            "cohort-speculation-{}-{:?}.json",
            std::process::id(),
            std::thread::current().id()
        ));
        let stats_path = stats.to_string_lossy().into_owned();
        let arguments = ["--device", "gpu-sim", "--quiet", "--stats", &stats_path];
        let outcome = compiled.batch_run().args(&arguments).args(way).run(input);
        let outcome = outcome.expect_code(code);
        let text = std::fs::read_to_string(&stats).expect("statistics were asked for");
        let _ = std::fs::remove_file(&stats);
        (
            outcome.lines(),
            serde_json::from_str::<Json>(&text).expect("statistics are JSON"),
        )
    };
    let (expected, waiting) = run(&["--without", "speculation"]);
    assert!(waiting.get("speculation").is_none(), "{waiting}");
    let (lines, guessing) = run(&[]);
    assert_eq!(lines, expected);
    for way in ways {
        assert_eq!(run(way).0, expected, "{way:?}");
    }
    [guessing, waiting]
}

#[test]
fn results_and_errors_are_those_of_instances_that_wait() {
    let mut rng = Rng::new(151);
    let model = Model::from_text(TAPE, &[("H", 5)], &mut rng);
    let input = tapes(300, 9, &mut rng);
    let ways: [&[&str]; 5] = [
        &["--batch", "1"],
        &["--batch", "3"],
        &["--batch", "61"],
        &["--in-flight", "7"],
        &["--no-batch"],
    ];
    let [guessing, waiting] = compare(&model, &input, &ways, 1);
    let (guesses, wrong) = speculation(&guessing);
    assert!(guesses > 100 && wrong > 20 && wrong < guesses, "{guessing}");
    assert!(
        guessing["flushes"].as_u64() < waiting["flushes"].as_u64(),
        "{guessing} {waiting}"
    );
    let outcome = model
        .batch_run()
        .args(&["--device", "gpu-sim"])
        .run(&input)
        .expect_code(1);
    let expected = model.oracle_lines(&input);
    compare_records(&expected, &outcome.lines(), Closeness::EachNumber(1e-4))
        .unwrap_or_else(|message| panic!("{message}\nfrom {}", outcome.describe()));
    let kinds: Vec<String> = (outcome.records().into_iter())
        .filter_map(|record| Some(record.result.err()?.kind))
        .collect();
    for kind in ["index_out_of_range", "division_by_zero", "nan_decision"] {
        assert!(kinds.iter().any(|found| found == kind), "{kinds:?}");
    }
}

/// What an instance may use it may use, whatever it has used where it should not have been.
#[test]
fn limits_are_those_of_instances_that_wait() {
    let mut rng = Rng::new(152);
    let model = Model::from_text(TAPE, &[("H", 5)], &mut rng);
    let input = tapes(120, 12, &mut rng);
    for limit in [
        ["--max-nodes", "9"],
        ["--max-steps", "4"],
        ["--max-memory", "700"],
    ] {
        let compiled = model.compile(&["--gpu-arch", "sim"]);
        let run = |way: &[&str]| {
            let run = compiled.batch_run().args(&["--device", "gpu-sim"]);
            run.args(&limit).args(way).run(&input).expect_code(1)
        };
        let expected = run(&["--without", "speculation"]);
        let kinds = expected.records();
        let stopped = |record: &cohort_e2e::records::Record| {
            (record.result.as_ref()).is_err_and(|error| error.kind.ends_with("_limit"))
        };
        assert!(kinds.iter().any(stopped), "{limit:?}");
        assert!(!kinds.iter().all(stopped), "{limit:?}");
        for way in [&[][..], &["--batch", "5"], &["--in-flight", "9"]] {
            assert_eq!(run(way).lines(), expected.lines(), "{limit:?} {way:?}");
        }
    }
}

/// Lists that grow in place cannot shrink again, so nothing is guessed.
#[test]
fn what_cannot_be_taken_back_is_not_guessed() {
    let text = "dim H
      param w: f32[H, H]
      fn main(xs: [f32[H]]) -> [f32[H]] {
        fold(xs, [], |kept, x| { let y = sin(3.0 * (x @ w)); if sum(y) > 0.0 { push(kept, y) } else { kept } })
      }";
    let mut rng = Rng::new(153);
    let model = Model::from_text(text, &[("H", 4)], &mut rng);
    let lines = (0..100).map(|_| {
        let count = rng.between(0, 6);
        let xs: Vec<Vec<f64>> = (0..count)
            .map(|_| (0..4).map(|_| rng.signed_unit()).collect())
            .collect();
        format!("{{\"xs\": {xs:?}}}\n")
    });
    let input: String = lines.collect();
    let [guessing, _] = compare(&model, &input, &[&["--batch", "7"]], 0);
    assert!(guessing.get("speculation").is_none(), "{guessing}");
}

/// Deep recursions that decide on the way down and up, among strands that wait side by side.
#[test]
fn trees_that_grow_as_their_nodes_vote() {
    let text = "dim H
      param a: f32[H, H]  param b: f32[H, H]  param v: f32[H, 1]
      type Tree = Cut | Node(i32, Tree, Tree)
      fn grow(h: f32[H], depth: i32) -> (Tree, f32[H]) {
        if depth > 0 && sum(sin(3.0 * (h @ v))) > -0.8 {
          let (left, x) = grow(sin(2.0 * (h @ a)), depth - 1);
          let g = tanh(x @ b + h);
          if sum(g) > 0.0 {
            let (right, y) = grow(g, depth - 2);
            (Node(depth, left, right), y + x)
          } else { (Node(-depth, left, Cut), g) }
        } else { (Cut, h) }
      }
      fn main(x: f32[H], depth: i32) -> (Tree, f32[H], f32) {
        let (tree, h) = grow(x, depth);
        (tree, h, random(depth))
      }";
    let mut rng = Rng::new(154);
    let model = Model::from_text(text, &[("H", 3)], &mut rng);
    let lines = (0..150).map(|number| {
        let x: Vec<f64> = (0..3).map(|_| rng.signed_unit()).collect();
        // One of them is so deep that its stack is not copied.
        let depth = if number == 140 { 90 } else { number % 7 };
        format!("{{\"id\": {number}, \"x\": {x:?}, \"depth\": {depth}}}\n")
    });
    let input: String = lines.collect();
    let ways: [&[&str]; 3] = [
        &["--batch", "1"],
        &["--batch", "28"],
        &["--in-flight", "13"],
    ];
    let [guessing, waiting] = compare(&model, &input, &ways, 0);
    let (guesses, wrong) = speculation(&guessing);
    assert!(guesses > 100 && wrong > 10, "{guessing}");
    assert!(
        guessing["flushes"].as_u64() < waiting["flushes"].as_u64(),
        "{guessing} {waiting}"
    );
}

/// A value is shown when it is known that the instance gets there, once.
#[test]
fn nothing_is_shown_ahead() {
    let text = "dim H
      param w: f32[H, H]
      fn main(x: f32[H]) -> (f32[H], i32) {
        let (x, steps, _) = while go with (x = x, steps = 0, go = true) {
          let x = sin(3.0 * (x @ w) + 0.1);
          let steps = debug(\"step\", steps + 1);
          (x, steps, steps < 12 && sum(x) < 0.7)
        };
        (debug(\"end\", x), steps)
      }";
    let mut rng = Rng::new(155);
    let model = Model::from_text(text, &[("H", 3)], &mut rng);
    let lines = (0..60).map(|number| {
        let x: Vec<f64> = (0..3).map(|_| rng.signed_unit()).collect();
        format!("{{\"id\": {number}, \"x\": {x:?}}}\n")
    });
    let input: String = lines.collect();
    let shown = |way: &[&str]| {
        let run = model.batch_run().args(&["--device", "gpu-sim"]);
        let outcome = run.args(way).run(&input).expect_code(0);
        let mut shown: Vec<(String, String)> = Vec::new();
        for line in outcome.stderr.lines().filter(|line| line.starts_with('{')) {
            let value: Json = serde_json::from_str(line).expect("what is shown is JSON");
            shown.push((value["id"].to_string(), line.to_owned()));
        }
        // In order within an instance.
        shown.sort_by(|a, b| a.0.cmp(&b.0));
        (shown, outcome.lines())
    };
    let expected = shown(&["--without", "speculation"]);
    assert!(expected.0.len() > 120);
    for way in [&[][..], &["--batch", "7"], &["--in-flight", "5"]] {
        assert_eq!(shown(way), expected, "{way:?}");
    }
}
