//! Large inputs are read where they are: nobody can tell but by the time and memory.

use cohort_e2e::{Model, Rng};
use serde_json::json;

/// Rows of the input come to operands of every kind: alone, in lists, in stacks, as pieces of a tensor, and beside computed
/// rows in one launch.
const TEXT: &str = "dim D
    param w: f32[D, D]
    param u: f32[D, D]
    type Tree = Leaf(f32[D]) | Node(Tree, Tree)
    fn state(t: Tree) -> f32[D] {
      match t {
        Leaf(x) => x,
        Node(l, r) => tanh(state(l) @ w + state(r) @ u)
      }
    }
    fn main(t: Tree, xs: [f32[D]], a: f32[n, D]) -> (f32[D], f32[D], f32[_, D], f32[n, D], f32[D]) {
      let top = state(t);
      let all = push(xs, top);
      let scores = softmax(a @ transpose(a));
      (top, sum(all) @ w, tanh(stack(all) @ u), scores @ (a @ w), sum(a, 0))
    }";

fn numbers(count: usize, rng: &mut Rng) -> Vec<f64> {
    let round = |x: f64| (x * 64.0).round() / 64.0;
    (0..count).map(|_| round(rng.signed_unit())).collect()
}

fn tree(leaves: usize, size: usize, rng: &mut Rng) -> serde_json::Value {
    if leaves == 1 {
        return json!({ "Leaf": [numbers(size, rng)] });
    }
    let left = rng.between(1, leaves - 1);
    json!({ "Node": [tree(left, size, rng), tree(leaves - left, size, rng)] })
}

/// Instances whose arrays have up to `most` rows, of no row too.
fn instances(count: usize, size: usize, most: usize, rng: &mut Rng) -> String {
    let rows = |rng: &mut Rng| -> Vec<_> {
        let rows = rng.below(most + 1);
        (0..rows).map(|_| numbers(size, rng)).collect()
    };
    let instance = |number: usize| {
        let t = tree(rng.between(1, 9), size, rng);
        let (xs, a) = (rows(rng), rows(rng));
        json!({ "id": number, "t": t, "xs": xs, "a": a }).to_string() + "\n"
    };
    (0..count).map(instance).collect()
}

/// In some compositions rows are lent however few there are.
#[test]
fn rows_that_are_lent_have_the_bits_of_copies() {
    for (size, seed) in [(1, 1), (3, 2), (28, 3), (61, 4)] {
        let mut rng = Rng::new(seed);
        let model = Model::from_text(TEXT, &[("D", size)], &mut rng);
        let input = instances(30, size as usize, 5, &mut rng);
        let call = model.batch_run();
        let outcome = call.args(&["--verify-batch-invariance", "40", "--seed", "5"]);
        let outcome = outcome.run(&input).expect_code(0);
        let holds = outcome.output.starts_with("batch invariance holds: ");
        assert!(holds, "{}\n{}", outcome.output, outcome.describe());
    }
}

/// A MB and more, of which the default lends: on any threads, and with batches that share a chunk of inputs.
#[test]
fn large_inputs_have_the_bits_of_copies() {
    let mut rng = Rng::new(6);
    let model = Model::from_text(TEXT, &[("D", 64)], &mut rng);
    let input = instances(60, 64, 200, &mut rng);
    let compiled = model.compile(&[]);
    let lines = |way: &[&str]| {
        let outcome = compiled.batch_run().args(way).run(&input);
        outcome.expect_code(0).lines()
    };
    let expected = lines(&["--without", "lending"]);
    let ways: [&[&str]; 5] = [
        &[],
        &["--threads", "2"],
        &["--batch", "60"],
        &["--batch", "60", "--threads", "3"],
        &["--batch", "60", "--without", "gather-fusion"],
    ];
    for way in ways {
        assert_eq!(lines(way), expected, "{way:?}");
    }
}
