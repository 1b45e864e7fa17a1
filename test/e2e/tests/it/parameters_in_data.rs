//! A parameter that goes through the program's data is the parameter that it is: all rows share it.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};

/// A layer is a value, taken apart in a recursion; heads are tuples in an array.
const TEXT: &str = "dim H
  param w: f32[H, H]  param b: f32[H]  param u: f32[H, H]
  type Layer = Layer(f32[H, H], f32[H])
  fn deep(l: Layer, x: f32[H], n: i32) -> f32[H] {
    if n <= 0 { x } else { let Layer(m, c) = l; deep(l, tanh(x @ m + c), n - 1) }
  }
  fn heads(hs: [(f32[H, H], i32)], x: f32[H], n: i32) -> f32[H] {
    fold(range(n), x, |h, k| { let (m, s) = hs[k % len(hs)]; tanh(h @ m) + f32(s) })
  }
  fn main(x: f32[H], n: i32) -> (f32[H], f32[H], [f32[H]]) {
    (deep(Layer(w, b), x, n), heads([(u, 1), (u, 2)], x, n), map(range(n), |k| deep(Layer(w, b), x * 0.5, k)))
  }";

fn input(rng: &mut Rng) -> String {
    let lines = (0..6).map(|n| {
        let x: Vec<f64> = (0..5).map(|_| rng.signed_unit()).collect();
        format!("{{\"x\": {x:?}, \"n\": {n}}}\n")
    });
    lines.collect()
}

#[test]
fn products_with_them_are_shared_and_agree_with_the_oracle() {
    let mut rng = Rng::new(2);
    let input = input(&mut rng);
    let model = Model::from_text(TEXT, &[("H", 5)], &mut rng);
    let compiled = model.compile(&[]);
    let expected = compiled.batch_run().run(&input).expect_code(0).lines();
    for composition in [&["--batch", "1"][..], &["--batch", "4"], &["--no-batch"]] {
        let outcome = compiled.batch_run().args(composition).run(&input);
        assert_eq!(outcome.expect_code(0).lines(), expected);
    }
    compare_records(
        &model.oracle_lines(&input),
        &expected,
        Closeness::EachNumber(1e-5),
    )
    .expect("the oracle finds the same");
}

#[test]
fn no_product_takes_a_matrix_a_row() {
    let model = Model::from_text(TEXT, &[("H", 5)], &mut Rng::new(2));
    let arguments = [
        model.source.clone().into_os_string(),
        "--weights".into(),
        model.weights_path.clone().into_os_string(),
        "--emit=batched".into(),
        "--explain-batching".into(),
    ];
    let outcome = cohort_e2e::tools::run("batch-opt", &arguments, "").expect_code(0);
    let said = outcome.describe();
    assert!(said.contains("shared operands @"), "{said}");
    assert!(!said.contains("a matrix a row"), "{said}");
}
