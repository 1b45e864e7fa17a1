//! What a recursion makes of an argument that it hands on is computed once, and no bit changes by that.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

const COMPOSITIONS: [&[&str]; 6] = [
    &[],
    &["--batch", "1"],
    &["--batch", "3"],
    &["--threads", "2"],
    &["--scheduler", "lookahead"],
    &["--no-batch"],
];

/// Children of a node one after another, from their parent and the one before. Structure decides.
const CHILDREN: &str = "dim H
  param u: f32[H, H]  param v: f32[H, H]  param b: f32[H]
  type Kids = End | Kid(Kids, Kids)
  fn cell(parent: f32[H], last: f32[H], t: Kids) -> f32[H] {
    let h = tanh(tanh(parent @ u + b) @ u + last @ v + b);
    match t {
      End => h,
      Kid(below, next) => cell(h, zeros([H]), below) * 0.5 + cell(parent, h, next)
    }
  }
  fn main(x: f32[H], t: Kids) -> f32[H] { cell(x, zeros([H]), t) }";

/// The same, where tensors decide.
const GROWING: &str = "dim H
  param u: f32[H, H]  param v: f32[H, H]  param w: f32[H, 2]
  type Kids = End | Kid(f32, Kids, Kids)
  fn grow(parent: f32[H], last: f32[H], depth: i32, place: i32) -> Kids {
    let h = sin(2.0 * (parent @ u) + last @ v);
    let p = h @ w;
    let below = if depth > 0 && p[0] > -0.2 { grow(h, zeros([H]), depth - 1, 0) } else { End };
    let next = if place < 3 && p[1] > -0.2 { grow(parent, h, depth, place + 1) } else { End };
    Kid(sum(h), below, next)
  }
  fn main(x: f32[H]) -> Kids { grow(x, zeros([H]), 3, 0) }";

fn vector(rng: &mut Rng) -> Vec<f64> {
    (0..64)
        .map(|_| f64::from(rng.signed_unit() as f32))
        .collect()
}

fn kids(depth: usize, rng: &mut Rng) -> String {
    if depth == 0 || rng.one_in(5) {
        return "\"End\"".to_owned();
    }
    let (below, next) = (kids(depth - 1, rng), kids(depth - 1, rng));
    format!("{{\"Kid\": [{below}, {next}]}}")
}

fn programs() -> [(&'static str, String); 2] {
    let mut rng = Rng::new(21);
    let children: String = (0..9)
        .map(|depth| {
            let x = vector(&mut rng);
            format!("{{\"x\": {x:?}, \"t\": {}}}\n", kids(depth % 6, &mut rng))
        })
        .collect();
    let growing: String = (0..9)
        .map(|_| format!("{{\"x\": {:?}}}\n", vector(&mut rng)))
        .collect();
    [(CHILDREN, children), (GROWING, growing)]
}

fn model(text: &str) -> Model {
    Model::from_text(text, &[("H", 64)], &mut Rng::new(5))
}

#[test]
fn no_bit_changes() {
    for (text, input) in programs() {
        let model = model(text);
        let (with, without) = (
            model.compile(&[]),
            model.compile(&["--without", "hoist-arguments"]),
        );
        let expected = without.batch_run().run(&input).expect_code(0).lines();
        compare_records(
            &model.oracle_lines(&input),
            &expected,
            Closeness::EachNumber(1e-4),
        )
        .expect("the oracle gives the same");
        for composition in COMPOSITIONS {
            let outcome = with
                .batch_run()
                .args(composition)
                .run(&input)
                .expect_code(0);
            assert_eq!(outcome.lines(), expected, "{}", outcome.describe());
        }
    }
}

/// Rows of the kernels by whether they are heads.
fn rows(model: &Model, input: &str, way: &[&str]) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let compiled = model.compile(way);
    let call = compiled.batch_run().arg("--stats").arg(&path);
    call.run(input).expect_code(0);
    let text = std::fs::read_to_string(&path).expect("the statistics were written");
    let stats: Json = serde_json::from_str(&text).expect("they are JSON");
    let kernels = stats["kernels"].as_array().expect("an array").iter();
    kernels.fold((0, 0), |(heads, others), kernel| {
        let rows = kernel["rows"].as_u64().expect("a number");
        match kernel["name"]
            .as_str()
            .is_some_and(|name| name.contains("_head"))
        {
            true => (heads + rows, others),
            false => (heads, others + rows),
        }
    })
}

#[test]
fn what_is_handed_on_is_computed_once() {
    for (text, input) in programs() {
        let model = model(text);
        let (heads, others) = rows(&model, &input, &[]);
        let (no_heads, all) = rows(&model, &input, &["--without", "hoist-arguments"]);
        assert_eq!((no_heads, others), (0, all));
        assert!(0 < heads && heads < all, "{heads} of {all} rows");
    }
}

/// Gradients go through the kernel as a whole.
#[test]
fn gradients_are_those_without() {
    let (text, input) = &programs()[0];
    let text = text.replace(
        "-> f32[H] { cell(x, zeros([H]), t) }",
        "-> f32 { sum(cell(x, zeros([H]), t)) }",
    );
    let model = model(&text);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("gradients");
    let gradients = |way: &[&str]| {
        let call = model.batch_run().arg("--gradients").arg(&path);
        call.args(way).run(input).expect_code(0);
        std::fs::read(&path).expect("the gradients were written")
    };
    let without = gradients(&["--without", "hoist-arguments"]);
    assert!(gradients(&[]) == without, "other bits");
}
