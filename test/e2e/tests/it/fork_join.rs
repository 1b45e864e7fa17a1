//! Parts of an instance that do not need each other wait side by side, and nothing else changes by that: not a
//! bit, not an error, not a limit, in no composition.

use cohort_e2e::records::{Closeness, Record, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

const COMPOSITIONS: [&[&str]; 9] = [
    &[],
    &["--batch", "1"],
    &["--batch", "5"],
    &["--batch", "7"],
    &["--in-flight", "3"],
    &["--threads", "2"],
    &["--scheduler", "agenda"],
    &["--scheduler", "lookahead"],
    &["--no-batch"],
];

/// Elements that settle after some turns each.
const SETTLE: &str = "dim H
  param w: f32[H, H]
  fn settle(x: f32[H], most: i32) -> (f32[H], i32) {
    let (h, turns, _) = while go with (h = x, turns = 0, go = true) {
      let h = sin(3.0 * (h @ w) + x);
      (h, turns + 1, turns + 1 < most && sum(h) < 1.5)
    };
    (h, turns)
  }
  fn main(xs: [f32[H]], most: i32) -> [(f32[H], i32)] { map(xs, |x| settle(x, most)) }";

/// A tree that grows as its nodes vote, each child by itself; one of its ways out may fail.
const GROW: &str = "dim H
  param a: f32[H, H]  param b: f32[H, H]  param v: f32[H, 2]
  type Tree = Cut | Node(f32, Tree, Tree)
  fn grow(h: f32[H], depth: i32, ends: [i32]) -> Tree {
    let p = sin(3.0 * (h @ v));
    let left = if depth > 0 && p[0] > -0.9 { grow(sin(2.0 * (h @ a)), depth - 1, ends) } else { Cut };
    let right = if depth > 0 && p[1] > -0.9 { grow(sin(2.0 * (h @ b)), depth - 1, ends) } else { Cut };
    Node(sum(h) + f32(ends[depth]), left, right)
  }
  fn main(x: f32[H], depth: i32, ends: [i32]) -> (Tree, f32) {
    let t = grow(x, depth, ends);
    (t, random(depth))
  }";

fn vectors(count: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut row = || (0..4).map(|_| rng.signed_unit()).collect();
    (0..count).map(|_| row()).collect()
}

fn settling(counts: &[usize], most: usize, rng: &mut Rng) -> String {
    let lines = counts.iter().map(|count| {
        let xs = vectors(*count, rng);
        format!("{{\"xs\": {xs:?}, \"most\": {most}}}\n")
    });
    lines.collect()
}

fn growing(depths: &[usize], rng: &mut Rng) -> String {
    let lines = depths.iter().enumerate().map(|(number, depth)| {
        let x = &vectors(1, rng)[0];
        format!("{{\"id\": \"{number}\", \"x\": {x:?}, \"depth\": {depth}, \"ends\": [1, 2, 3, 4, 5, 6, 7]}}\n")
    });
    lines.collect()
}

fn model(text: &str) -> Model {
    Model::from_text(text, &[("H", 4)], &mut Rng::new(7))
}

/// The same lines, whatever the composition, with strands and without.
#[track_caller]
fn check_lines(text: &str, input: &str, arguments: &[&str], code: i32) -> Vec<String> {
    let model = model(text);
    let (with, without) = (
        model.compile(&[]),
        model.compile(&["--without", "fork-join"]),
    );
    let call = without.batch_run().args(arguments);
    let expected = call.run(input).expect_code(code).lines();
    for composition in COMPOSITIONS {
        for compiled in [&with, &without] {
            let call = compiled.batch_run().args(arguments).args(composition);
            let outcome = call.run(input).expect_code(code);
            assert_eq!(outcome.lines(), expected, "{}", outcome.describe());
        }
    }
    expected
}

/// How many flushes one instance takes.
fn flushes(model: &Model, input: &str, way: &[&str]) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let compiled = model.compile(way);
    let call = compiled.batch_run().arg("--stats").arg(&path);
    call.run(input).expect_code(0);
    let text = std::fs::read_to_string(&path).expect("the statistics were written");
    let stats: Json = serde_json::from_str(&text).expect("they are JSON");
    stats["flushes"].as_u64().expect("a number")
}

#[test]
fn elements_of_a_map_wait_side_by_side() {
    let mut rng = Rng::new(3);
    let input = settling(&[16], 20, &mut rng);
    let model = model(SETTLE);
    let outcome = model.batch_run().run(&input).expect_code(0);
    let record: Json = serde_json::from_str(&outcome.lines()[0]).expect("a record");
    let elements = record["output"].as_array().expect("an array");
    let turns = elements
        .iter()
        .map(|element| element[1].as_u64().expect("a number"));
    let (most, all) = (turns.clone().max().unwrap_or(0), turns.sum::<u64>());
    assert!(all > 2 * most, "{record}");
    let (with, without) = (
        flushes(&model, &input, &[]),
        flushes(&model, &input, &["--without", "fork-join"]),
    );
    assert!(with <= most + 1, "{with} flushes for {most} turns");
    assert!(without + 16 >= all, "{without} flushes for {all} turns");
}

#[test]
fn elements_are_filtered_side_by_side() {
    let text = SETTLE.replace(
        "fn main(xs: [f32[H]], most: i32) -> [(f32[H], i32)] { map(xs, |x| settle(x, most)) }",
        "fn odd(x: f32[H], most: i32) -> bool { let (_, turns) = settle(x, most); turns % 2 == 1 }
         fn main(xs: [f32[H]], most: i32) -> ([f32[H]], [f32[H]], i32) {
           (filter(xs, |x| sum(x @ w) > 0.0), filter(xs, |x| odd(x, most)), len(filter(range(most), |k| k % 3 == 0)))
         }",
    );
    let input = settling(&[16, 0, 1, 5], 12, &mut Rng::new(11));
    let lines = check_lines(&text, &input, &[], 0);
    let oracle = model(&text).oracle_lines(&input);
    compare_records(&oracle, &lines, Closeness::EachNumber(1e-6))
        .expect("the oracle keeps the same");
    let one = settling(&[16], 12, &mut Rng::new(11));
    let flushes = flushes(&model(&text), &one, &[]);
    assert!(flushes <= 13, "{flushes} flushes for 12 turns");
}

#[test]
fn calls_that_decide_wait_side_by_side() {
    let input = growing(&[6], &mut Rng::new(4));
    let model = model(GROW);
    let (with, without) = (
        flushes(&model, &input, &[]),
        flushes(&model, &input, &["--without", "fork-join"]),
    );
    assert!(with <= 8, "{with} flushes for a tree of 7 levels");
    assert!(
        without > 2 * with,
        "{without} flushes without strands, {with} with"
    );
}

#[test]
fn bits_are_those_without_strands() {
    let mut rng = Rng::new(5);
    let input = settling(&[3, 0, 1, 16, 2, 5, 1, 7, 4, 28], 9, &mut rng);
    check_lines(SETTLE, &input, &[], 0);
    let input = growing(&[0, 6, 1, 4, 3, 6, 2, 5, 6], &mut rng);
    check_lines(GROW, &input, &[], 0);
}

#[test]
fn bits_are_those_of_the_verifier() {
    let mut rng = Rng::new(6);
    for (text, input) in [
        (SETTLE, settling(&[3, 0, 1, 16, 2], 9, &mut rng)),
        (GROW, growing(&[0, 6, 1, 4, 3], &mut rng)),
    ] {
        let model = model(text);
        let call = model.batch_run().args(&["--verify-batch-invariance", "12"]);
        call.run(&input).expect_code(0);
        assert_eq!(model.oracle_lines(&input).len(), input.lines().count());
    }
}

/// Two loops of `main`, where a decision that needs the first stands between them.
const LOOPS: &str = "dim H
  param w: f32[H, H]
  fn settle(x: f32[H], most: i32) -> (f32[H], i32) {
    let (h, turns, _) = while go with (h = x, turns = 0, go = true) {
      let h = tanh(h @ w) + x;
      (h, turns + 1, turns + 1 < most && sum(h) < 9.0)
    };
    (h, turns)
  }
  fn main(x: f32[H], y: f32[H], most: i32) -> (f32[H], f32[H], i32, i32) {
    let (a, n) = settle(x, most);
    let c = tanh(a @ w);
    let d = if sum(c) > 0.0 { c } else { a };
    let (b, m) = settle(y, most);
    (d, d + b, n, m)
  }";

#[test]
fn loops_of_main_wait_side_by_side_around_a_decision() {
    let mut rng = Rng::new(9);
    let lines = [14, 0, 3, 14, 9].map(|most| {
        let [x, y] = &vectors(2, &mut rng)[..] else {
            unreachable!("two vectors");
        };
        format!("{{\"x\": {x:?}, \"y\": {y:?}, \"most\": {most}}}\n")
    });
    let input = lines.concat();
    let found = check_lines(LOOPS, &input, &[], 0);
    let model = model(LOOPS);
    compare_records(
        &model.oracle_lines(&input),
        &found,
        Closeness::EachNumber(1e-5),
    )
    .expect("the oracle finds the same");
    let record: Json = serde_json::from_str(&found[0]).expect("a record");
    let turns = |place: usize| record["output"][place].as_u64().expect("a number");
    let (first, second) = (turns(2), turns(3));
    assert!(first.min(second) >= 4, "{record}");
    let with = flushes(&model, &lines[0], &[]);
    let without = flushes(&model, &lines[0], &["--without", "fork-join"]);
    assert!(with <= first.max(second) + 2, "{with} flushes: {record}");
    assert!(without >= first + second, "{without} flushes: {record}");
    let call = model.batch_run().args(&["--verify-batch-invariance", "12"]);
    call.run(&input).expect_code(0);
}

/// Two loops that are written in `main` itself.
const WRITTEN_IN_MAIN: &str = "dim H
  param w: f32[H, H]
  fn main(x: f32[H], y: f32[H], most: i32) -> (f32[H], f32[H], i32, i32) {
    let (a, n, _) = while go with (h = x, turns = 0, go = true) {
      let h = tanh(h @ w) + x;
      (h, turns + 1, turns + 1 < most && sum(h) < 9.0)
    };
    let (b, m, _) = while go with (h = y, turns = 0, go = true) {
      let h = tanh(h @ w) + y;
      (h, turns + 1, turns + 1 < most && sum(h) < 9.0)
    };
    (a, b, n, m)
  }";

#[test]
fn loops_that_are_written_in_main_wait_side_by_side() {
    let mut rng = Rng::new(11);
    let lines = [15, 0, 4, 15].map(|most| {
        let vectors = vectors(2, &mut rng);
        let (x, y) = (&vectors[0], &vectors[1]);
        format!("{{\"x\": {x:?}, \"y\": {y:?}, \"most\": {most}}}\n")
    });
    check_lines(WRITTEN_IN_MAIN, &lines.concat(), &[], 0);
    // A last turn decides nothing, and what it computes is in the flush of the end.
    let model = model(WRITTEN_IN_MAIN);
    assert_eq!(flushes(&model, &lines[0], &[]), 15);
    let without = flushes(&model, &lines[0], &["--without", "fork-join"]);
    assert_eq!(without, 29);
}

/// Two chains that the program turns from one to the other of: each call needs the one before the last.
const CHAINS: &str = "dim H
  param w: f32[H, H]
  fn walk(x: f32[H], turns: i32, xs: [i32]) -> i32 {
    let (h, n, _) = while go with (h = x, n = 0, go = turns > 0) {
      let h = tanh(h @ w);
      (h, n + 1, n + 1 < turns && sum(h) > -9.0)
    };
    xs[n]
  }
  fn main(x: f32[H], k: i32, l: i32, xs: [i32]) -> (i32, i32, i32) {
    let a = walk(x, k, xs);
    let b = walk(x, l, xs);
    let c = walk(x, a, xs);
    let d = walk(x, b, xs);
    let e = walk(x, c + d, xs);
    (c, d, e)
  }";

fn chains(cases: &[(usize, usize, &[i32])]) -> String {
    let lines = cases.iter().map(|(k, l, xs)| {
        format!("{{\"x\": [0.5, -0.5, 0.25, 1.0], \"k\": {k}, \"l\": {l}, \"xs\": {xs:?}}}\n")
    });
    lines.collect()
}

#[test]
fn strands_that_wait_for_others_change_nothing() {
    let to = |value: i32, length: usize| vec![value; length];
    let input = chains(&[
        (9, 2, &[0, 0, 9, 0, 0, 0, 0, 0, 0, 2, 1, 4]),
        (0, 0, &[0]),
        // The second call fails after the third, which fails as well.
        (1, 5, &[0, 7, 0]),
        // The third fails before the fourth.
        (2, 1, &[0, 2, 3]),
        (3, 3, &to(3, 4)),
        (28, 1, &to(1, 29)),
        (1, 28, &to(1, 29)),
        (4, 4, &[]),
    ]);
    let lines = check_lines(CHAINS, &input, &[], 1);
    let oracle = model(CHAINS).oracle_lines(&input);
    compare_records(&oracle, &lines, Closeness::EachNumber(0.0))
        .expect("the oracle finds the same");
    for limit in [["--max-steps", "60"], ["--max-nodes", "12"]] {
        check_lines(CHAINS, &input, &limit, 1);
    }
    let model = model(CHAINS);
    let call = model.batch_run().args(&["--verify-batch-invariance", "12"]);
    call.run(&input).expect_code(0);
}

/// Errors of both calls, of the later one first in time, and of what stands between and behind them.
#[test]
fn the_first_error_of_the_program_counts() {
    let text = "dim H
      param w: f32[H, H]
      fn walk(x: f32[H], turns: i32, xs: [i32], k: i32) -> i32 {
        let (h, n, _) = while go with (h = x, n = 0, go = turns > 0) {
          let h = tanh(h @ w);
          (h, n + 1, n + 1 < turns && sum(h) > -9.0)
        };
        xs[k] / (turns - 3) + n
      }
      fn main(x: f32[H], a: [i32], b: [i32]) -> (i32, [i32]) {
        let first = walk(x, a[0], a, a[1]);
        let between = a[a[2]];
        let second = walk(x, b[0], b, b[1]);
        let all = map(b, |k| walk(x, k, b, k));
        (first + between + second, all)
      }";
    let line = |a: [i32; 3], b: [i32; 3]| {
        format!("{{\"x\": [0.5, -0.5, 0.25, 1.0], \"a\": {a:?}, \"b\": {b:?}}}\n")
    };
    let cases = [
        (line([5, 0, 0], [1, 2, 0]), ""),
        // The second walk ends first, and both fail.
        (line([9, 8, 0], [3, 0, 0]), "index_out_of_range"),
        (line([3, 0, 0], [1, 9, 0]), "division_by_zero"),
        (line([5, 0, 7], [3, 0, 0]), "index_out_of_range"),
        (line([5, 0, 0], [3, 0, 0]), "division_by_zero"),
        // An element of the map.
        (line([5, 0, 0], [1, 0, 3]), "index_out_of_range"),
        (line([5, 0, 0], [4, 0, 1]), "index_out_of_range"),
    ];
    let input: String = cases.iter().map(|(line, _)| line.as_str()).collect();
    let lines = check_lines(text, &input, &[], 1);
    let oracle = model(text).oracle_lines(&input);
    for ((line, of_oracle), (input, kind)) in lines.iter().zip(&oracle).zip(&cases) {
        for line in [line, of_oracle] {
            let record = Record::parse(line).expect("already checked");
            let found = record
                .result
                .err()
                .map(|error| error.kind)
                .unwrap_or_default();
            assert_eq!(found, *kind, "{line} of {input}");
        }
    }
}

#[test]
fn limits_are_those_of_the_whole_instance() {
    let mut rng = Rng::new(8);
    let input = settling(&[3, 16, 1, 28, 5, 0, 16], 12, &mut rng);
    for limit in [
        ["--max-steps", "60"],
        ["--max-steps", "100"],
        ["--max-nodes", "50"],
        ["--max-memory", "4000"],
    ] {
        check_lines(SETTLE, &input, &limit, 1);
    }
    let input = growing(&[6, 0, 3, 6, 2], &mut rng);
    for limit in [["--max-depth", "5"], ["--max-steps", "40"]] {
        check_lines(GROW, &input, &limit, 1);
    }
}

#[test]
fn what_is_shown_stays_in_the_order_of_the_program() {
    let text = "dim H
      param w: f32[H, H]
      fn walk(x: f32[H], turns: i32) -> i32 {
        let (_, n, _) = while go with (h = x, n = 0, go = turns > 0) {
          let h = debug(\"h\", tanh(h @ w));
          (h, n + 1, n + 1 < turns && sum(h) > -9.0)
        };
        n
      }
      fn main(x: f32[H], ks: [i32]) -> [i32] { map(ks, |k| walk(x, k)) }";
    let model = model(text);
    let input = "{\"x\": [0.5, -0.5, 0.25, 1.0], \"ks\": [3, 0, 5, 1]}\n";
    let shown = |way: &[&str]| {
        let compiled = model.compile(way);
        compiled
            .batch_run()
            .arg("--quiet")
            .run(input)
            .expect_code(0)
            .stderr
    };
    let lines = shown(&[]);
    assert_eq!(lines.lines().count(), 9, "{lines}");
    assert_eq!(lines, shown(&["--without", "fork-join"]));
}

/// A call in each call, and many instances: more strands than there are stacks for.
#[test]
fn a_recursion_may_be_deep_and_have_many_strands() {
    let text = "dim H
      param w: f32[H, H]
      fn down(x: f32[H], depth: i32) -> i32 {
        let here = if sum(x) > -9.0 { 1 } else { 0 };
        let below = if depth > 0 { down(x, depth - 1) } else { 0 };
        let beside = if sum(x @ w) > -99.0 { 1 } else { 0 };
        here + below + beside
      }
      fn main(x: f32[H], depth: i32) -> i32 { down(x, depth) }";
    let model = model(text);
    let compiled = model.compile(&[]);
    let line = |depth: usize| format!("{{\"x\": [0.5, -0.5, 0.25, 1.0], \"depth\": {depth}}}\n");
    let run = |input: &str| compiled.batch_run().run(input).expect_code(0).lines();
    let deep = run(&line(10_000));
    assert!(deep[0].contains("20002"), "{deep:?}");
    let many = run(&line(20).repeat(1000));
    assert_eq!(many.len(), 1000);
    assert!(many.iter().all(|line| line.contains("42")), "{}", many[0]);
}

/// The calls of strands are gone over backwards as if they had run one after another.
#[test]
fn gradients_have_the_bits_of_strands_one_after_another() {
    let text = "dim H
      param w: f32[H, H]
      fn settle(x: f32[H], most: i32) -> f32[H] {
        let (h, _, _) = while go with (h = x, turns = 0, go = true) {
          let h = sin(3.0 * (h @ w) + x);
          (h, turns + 1, turns + 1 < most && sum(h) < 1.5)
        };
        h
      }
      fn both(x: f32[H], k: i32) -> f32[H] {
        if k == 0 { x } else { both(settle(x, k), k - 1) + settle(x * 0.5, k + 2) }
      }
      fn main(xs: [f32[H]], most: i32) -> f32 {
        let hs = map(xs, |x| settle(x, most) + both(x, 4));
        let a = settle(fill([H], 0.5), most);
        let b = both(fill([H], 0.75), 2);
        let c = settle(a * 0.5, 3);
        let d = both(b * 0.5, 2);
        sum(sum(hs) * both(fill([H], 0.25), 3)) + sum(c * d + a)
      }";
    let input = settling(&[3, 0, 1, 16, 2], 9, &mut Rng::new(9));
    let model = model(text);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("gradients");
    let gradients = |composition: &[&str]| {
        let call = model.batch_run().arg("--gradients").arg(&path);
        call.args(composition).run(&input).expect_code(0);
        std::fs::read(&path).expect("the gradients were written")
    };
    let expected = gradients(&["--no-batch"]);
    for composition in COMPOSITIONS {
        assert!(
            gradients(composition) == expected,
            "other bits: {composition:?}"
        );
    }
}

/// An array that a loop pushes to grows in place, also where a strand pushes.
#[test]
fn strands_may_push_to_an_array_that_a_loop_carries() {
    let text = "dim H
      param w: f32[H, H]
      fn settle(x: f32[H], most: i32) -> i32 {
        let (_, turns, _) = while go with (h = x, turns = 0, go = true) {
          let h = sin(3.0 * (h @ w) + x);
          (h, turns + 1, turns + 1 < most && sum(h) < 1.5)
        };
        turns
      }
      fn main(xs: [f32[H]], most: i32) -> ([i32], [i32]) {
        for x in xs with (all: [i32] = [], long: [i32] = [7]) {
          let n = len(long);
          let long = if sum(x @ w) > 0.0 { push(long, settle(x, most)) } else { long };
          let m = settle(x * 0.5, most);
          let next = if sum(x) > 0.0 { push(push(all, n), m) } else { push(all, len(all)) };
          (next, long)
        }
      }";
    let input = settling(&[3, 0, 1, 16, 2, 28], 9, &mut Rng::new(10));
    let lines = check_lines(text, &input, &[], 0);
    let oracle = model(text).oracle_lines(&input);
    compare_records(&oracle, &lines, Closeness::EachNumber(0.0))
        .expect("the oracle finds the same");
}
