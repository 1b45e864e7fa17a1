//! Blocks are copied for empty lists and for rows that are constants, and nothing changes by that but how long it
//! takes: not a bit, whatever the weights.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::weights::write_weights;
use cohort_e2e::{Model, Rng};
use cohort_oracle::Data;
use serde_json::Value as Json;

const COMPOSITIONS: [&[&str]; 6] = [
    &[],
    &["--batch", "1"],
    &["--batch", "5"],
    &["--threads", "2"],
    &["--scheduler", "lookahead"],
    &["--no-batch"],
];

/// The sum of no children is zero, and its product starts from a parameter.
const CHILDREN: &str = "dim H
  param u: f32[H, H]  param b: f32[H]  param d: f32[H, H]
  type Tree = Tree(f32[H], [Tree])
  fn cell(t: Tree) -> f32[H] {
    let Tree(x, children) = t;
    let hs = map(children, cell);
    let kept = sum(map(hs, |h| tanh(h @ d) * x));
    (sum(hs) @ u + b) * x + kept
  }
  fn main(t: Tree) -> (f32[H], f32[H]) { let h = cell(t); (h, 1.0 / h) }";

/// A loop that begins with zeros, whose product starts from rows.
const TURNS: &str = "dim H
  param u: f32[H, H]  param b: f32[H]  param d: f32[H, H]
  fn main(x: f32[H], n: i32) -> (f32[H], f32[H]) {
    let (g, h, _) = while k < n with (g = x, h = zeros([H]), k = 0) {
      (h * 0.5 + x, g @ d + h @ u + b, k + 1)
    };
    (h, 1.0 / h)
  }";

/// One that begins with a parameter.
const LEARNED: &str = "dim H
  param u: f32[H, H]  param b: f32[H]  param d: f32[H, H]
  fn main(x: f32[H], n: i32) -> (f32[H], f32[H]) {
    let (h, _) = while k < n with (h = b, k = 0) { ((h @ u) * x + d[0], k + 1) };
    (h, 1.0 / h)
  }";

/// A tree whose leaves are zeros.
const LEAVES: &str = "dim H
  param u: f32[H, H]  param b: f32[H]  param d: f32[H, H]
  type Tree = Leaf | Node(Tree, f32[H], Tree)
  fn cell(t: Tree) -> f32[H] {
    match t { Leaf => zeros([H]), Node(l, x, r) => (cell(l) @ u + cell(r) @ d + b) * x }
  }
  fn main(t: Tree) -> (f32[H], f32[H]) { let h = cell(t); (h, 1.0 / h) }";

fn model(text: &str) -> Model {
    Model::from_text(text, &[("H", 64)], &mut Rng::new(5))
}

/// Some numbers and both zeros, or zeros alone.
fn vector(rng: &mut Rng) -> Vec<f64> {
    let scale = if rng.one_in(4) { 0.0 } else { 1.0 };
    let mut x: Vec<f64> = (0..64)
        .map(|_| scale * f64::from(rng.signed_unit() as f32).abs())
        .collect();
    x[3] = 0.0;
    x[7] = -0.0;
    x
}

fn children(depth: usize, rng: &mut Rng) -> String {
    let count = if depth == 0 { 0 } else { rng.below(4) };
    let below: Vec<String> = (0..count).map(|_| children(depth - 1, rng)).collect();
    format!("{{\"Tree\": [{:?}, [{}]]}}", vector(rng), below.join(", "))
}

fn leaves(depth: usize, rng: &mut Rng) -> String {
    if depth == 0 || rng.one_in(4) {
        return "\"Leaf\"".to_owned();
    }
    let (left, right) = (leaves(depth - 1, rng), leaves(depth - 1, rng));
    format!("{{\"Node\": [{left}, {:?}, {right}]}}", vector(rng))
}

/// A program with its instances.
fn programs() -> Vec<(&'static str, String)> {
    let mut rng = Rng::new(9);
    let trees = |make: fn(usize, &mut Rng) -> String, rng: &mut Rng| -> String {
        let lines = (0..9).map(|number| format!("{{\"t\": {}}}\n", make(number % 4, rng)));
        lines.collect()
    };
    let turns: String = (0..9)
        .map(|number| format!("{{\"x\": {:?}, \"n\": {}}}\n", vector(&mut rng), number % 4))
        .collect();
    vec![
        (CHILDREN, trees(children, &mut rng)),
        (TURNS, turns.clone()),
        (LEARNED, turns),
        (LEAVES, trees(leaves, &mut rng)),
    ]
}

/// Changes the weights of a name, element by element.
fn change(model: &mut Model, name: &str, change: impl Fn(usize, f64) -> f64) {
    let weight = model.weights.get_mut(name).expect("a weight of that name");
    let Data::F32(data) = &mut weight.data else {
        panic!("`{name}` is of numbers");
    };
    for (index, value) in data.iter_mut().enumerate() {
        *value = change(index, *value);
    }
    write_weights(&model.weights_path, &model.weights);
}

/// The same lines with copies and without, in every composition.
#[track_caller]
fn check_bits(model: &Model, input: &str) -> Vec<String> {
    let with = model.compile(&[]);
    let without = model.compile(&["--without", "specialise-kernels"]);
    let expected = without.batch_run().run(input).expect_code(0).lines();
    for composition in COMPOSITIONS {
        let outcome = with.batch_run().args(composition).run(input).expect_code(0);
        assert_eq!(outcome.lines(), expected, "{}", outcome.describe());
    }
    expected
}

#[test]
fn copies_change_no_bit_and_agree_with_the_oracle() {
    for (text, input) in programs() {
        // Without what divides by numbers that may be small.
        let model = model(&text.replace("1.0 / h", "h"));
        let lines = check_bits(&model, &input);
        compare_records(
            &model.oracle_lines(&input),
            &lines,
            Closeness::WholeOutput(1e-4),
        )
        .unwrap_or_else(|why| panic!("{text}: {why}"));
    }
}

#[test]
fn weights_that_are_not_finite_change_no_bit() {
    for (text, input) in programs() {
        for (name, value) in [
            ("u", f64::INFINITY),
            ("u", f64::NEG_INFINITY),
            ("u", f64::NAN),
            ("d", f64::INFINITY),
            ("b", f64::INFINITY),
            ("b", f64::NAN),
        ] {
            let mut model = model(text);
            change(
                &mut model,
                name,
                |index, old| if index % 37 == 5 { value } else { old },
            );
            check_bits(&model, &input);
        }
    }
}

#[test]
fn signs_of_zeros_stay_as_they_are() {
    let mut negative = Vec::new();
    for (text, input) in programs() {
        let mut model = model(text);
        // Columns that make every zero negative, others that do not, and starts of -0.
        change(&mut model, "u", |index, old| match index % 4 {
            0 => -old.abs(),
            1 => -0.0,
            2 => 0.0,
            _ => old,
        });
        change(&mut model, "d", |index, old| {
            if index % 4 < 2 { -old.abs() } else { old }
        });
        change(&mut model, "b", |_, _| -0.0);
        let lines = check_bits(&model, &input);
        negative.push(lines.iter().any(|line| line.contains("-0.0")));
    }
    assert!(
        negative[1] && negative[3],
        "zeros are negative in {negative:?}"
    );
}

/// The arithmetic of all products of a run.
fn flops(model: &Model, way: &[&str], input: &str) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let compiled = model.compile(way);
    let call = compiled.batch_run().arg("--stats").arg(&path);
    call.run(input).expect_code(0);
    let text = std::fs::read_to_string(&path).expect("the statistics were written");
    let stats: Json = serde_json::from_str(&text).expect("they are JSON");
    let kernels = stats["kernels"].as_array().expect("a list");
    kernels
        .iter()
        .map(|kernel| kernel["flops"].as_u64().expect("a number"))
        .sum()
}

#[test]
fn products_of_what_is_known_are_not_computed() {
    for (text, input) in programs() {
        let model = model(text);
        let with = flops(&model, &[], &input);
        let without = flops(&model, &["--without", "specialise-kernels"], &input);
        assert!(
            with < without,
            "{text}: {with} with copies, {without} without"
        );
    }
}

#[test]
fn compositions_are_verified_with_copies() {
    for (text, input) in programs() {
        let model = model(text);
        let call = model
            .batch_run()
            .args(&["--verify-batch-invariance", "12", "--seed", "3"]);
        call.run(&input).expect_code(0);
    }
}
