//! Recursions that the compiler writes out: what is computed stays what the oracle says, whatever the structure.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};

use crate::language::check;

const VECTORS: [&str; 4] = [
    r#"{"x":[0.5,-0.25,1,0]}"#,
    r#"{"x":[-0.5,0.75,0,-1]}"#,
    r#"{"x":[0,0,0,0]}"#,
    r#"{"x":[2,1,-1,0.125]}"#,
];

#[test]
fn layers_that_a_recursion_counts() {
    check(
        "dim L, H
        param w: f32[L, H, H]  param b: f32[L, H]
        fn up(x: f32[H], l: i32) -> f32[H] {
          if l >= L { x } else { up(tanh(x @ w[l] + b[l]), l + 1) }
        }
        fn down(x: f32[H], l: i32, n: i32) -> f32[H] {
          match l {
            0 => x,
            _ if l < n && l != 3 => x + b[l],
            _ => down(sigmoid(x @ w[l - 1]), l - 1, n)
          }
        }
        fn twice(x: f32[H], l: i32) -> f32[H] {
          if l == L { x * 0.5 } else { twice(x @ w[l], l + 1) + twice(x * b[l], l + 1) }
        }
        fn main(x: f32[H]) -> (f32[H], f32[H], f32[H], f32[H]) {
          (up(x, 0), up(x, L - 1), down(x, L, 2), twice(x, 0))
        }",
        &[("L", 3), ("H", 4)],
        &VECTORS,
    );
}

/// Copies that stay functions: of children, and where a decision lies between two layers.
#[test]
fn layers_that_a_tree_counts() {
    check(
        "dim H, K
        param w: f32[3, H, K, K]  param b: f32[3, H]
        type Tree = Leaf(f32[H]) | One(Tree) | Two(Tree, Tree)
        fn cell(t: Tree, l: i32) -> f32[H] {
          match t {
            Leaf(x) => x,
            One(a) => if l > 2 { zeros([H]) } else { cell(a, l + 1) * sum(sum(w[l], axis = 1), axis = 1) },
            Two(l1, r1) => if l > 2 { ones([H]) } else {
              tanh((cell(l1, l + 1) - cell(r1, l + 1)) * b[l] + sum(sum(w[l], axis = 1), axis = 1))
            }
          }
        }
        fn leave(x: f32[H], l: i32) -> f32[H] {
          if l == 3 { x } else {
            let y = tanh(x + sum(sum(w[l] * 0.01, axis = 1), axis = 1) + b[l]);
            if sum(y) > 0.5 { y } else { leave(y, l + 1) }
          }
        }
        fn main(t: Tree) -> (f32[H], f32[H]) { let h = cell(t, 0); (h, leave(h, 0)) }",
        &[("H", 4), ("K", 32)],
        &[
            r#"{"t":{"Leaf":[[1,-1,0.5,0]]}}"#,
            r#"{"t":{"Two":[{"Leaf":[[1,-1,0.5,0]]},{"Leaf":[[0,2,0.5,-1]]}]}}"#,
            r#"{"t":{"One":[{"One":[{"One":[{"One":[{"Leaf":[[1,-1,0.5,0]]}]}]}]}]}}"#,
            r#"{"t":{"Two":[{"One":[{"Two":[{"Leaf":[[1,1,1,1]]},{"Leaf":[[-3,0,0,1]]}]}]},{"Leaf":[[0,2,0.5,-1]]}]}}"#,
        ],
    );
}

/// A count that leaves the parameter is the instance's error, and only where it is reached.
#[test]
fn a_count_that_leaves_the_parameter() {
    check(
        "param w: f32[2, 4, 4]
        fn deep(x: f32[4], l: i32, n: i32) -> f32[4] {
          if l >= 3 || l >= n { x } else { deep(x @ w[l], l + 1, n) }
        }
        fn main(x: f32[4], n: i32) -> f32[4] { if n == 0 { deep(x, 0, 9) } else { deep(x, 0, 2) } }",
        &[],
        &[
            r#"{"x":[1,2,3,4],"n":0}"#,
            r#"{"x":[1,2,3,4],"n":1}"#,
            r#"{"x":[1,0,0,4],"n":0}"#,
        ],
    );
}

/// A program over lists and trees whose calls are unrolled: the arguments that calls change, results of several
/// tensors, children in any order, leaves that compute.
const UNROLLED: &str = "dim V, H
    param emb: f32[V, H]  param w: f32[H, H]  param u: f32[H, H]  param b: f32[H]
    type List = End | Item(i32, List)
    type Tree = Leaf(i32) | One(Tree) | Two(Tree, i32, Tree)
    fn back(xs: List) -> f32[H] {
      match xs { End => zeros([H]), Item(k, rest) => tanh(emb[k] + back(rest) @ u) }
    }
    fn along(xs: List, h: f32[H], n: i32) -> (f32[H], i32) {
      match xs { End => (h, n), Item(k, rest) => along(rest, tanh(emb[k] * b + h @ u), n + k) }
    }
    fn cell(t: Tree, depth: i32) -> (f32[H], f32[H]) {
      match t {
        Leaf(k) => (tanh(emb[k] @ w), emb[k]),
        One(a) => { let (h, c) = cell(a, depth + 1); (c, h * 0.5) }
        Two(l, k, r) => {
          let (hr, cr) = cell(r, depth + 1);
          let x = emb[k] @ w;
          let (hl, cl) = cell(l, depth * 2);
          let c = sigmoid(hl @ u + x) * cl + cr;
          (tanh(c + hr @ w) + f32(depth), if k > 1 { c } else { cl })
        }
      }
    }
    fn main(t: Tree, xs: List) -> (f32[H], f32[H], f32[H], f32[H], i32) {
      let (h, c) = cell(t, 1);
      let (along, n) = along(xs, b, 0);
      (h, c, back(xs), along, n)
    }";

/// A list of the numbers from 0 to before its length, round and round those of the words.
fn list(length: usize) -> String {
    (0..length).fold("\"End\"".to_owned(), |rest, k| {
        format!("{{\"Item\":[{},{rest}]}}", k % 5)
    })
}

/// A single leaf, chains, a full tree, combs to both sides and one that is none of these.
fn trees() -> Vec<String> {
    let leaf = |k: usize| format!("{{\"Leaf\":[{k}]}}");
    let two = |l: &str, k: usize, r: &str| format!("{{\"Two\":[{l},{k},{r}]}}");
    let chain = (0..9).fold(leaf(2), |t, _| format!("{{\"One\":[{t}]}}"));
    let full = (0..4).fold(leaf(1), |t, k| two(&t, k, &t));
    let left = (0..6).fold(leaf(0), |t, k| two(&t, k % 5, &leaf(3)));
    let right = (0..7).fold(leaf(4), |t, k| two(&leaf(k % 5), 1, &t));
    let mixed = two(&chain, 3, &two(&full, 0, &right));
    vec![leaf(3), chain, full, left, right, mixed]
}

/// Lines of trees and lists, as the oracle computes them; every batch gives the same bits.
#[track_caller]
fn check_unrolled(text: &str, input: &str, levels: &str) {
    let model = Model::from_text(text, &[("V", 5), ("H", 6)], &mut Rng::new(7));
    let compiled = model.compile(&["--unroll", levels]);
    let lines = compiled.batch_run().run(input).expect_code(0).lines();
    compare_records(
        &model.oracle_lines(input),
        &lines,
        Closeness::EachNumber(1e-5),
    )
    .unwrap_or_else(|message| panic!("{message}\nwith {levels} in\n{text}"));
    for composition in [
        &["--batch", "1"][..],
        &["--batch", "4"],
        &["--no-batch"],
        &["--threads", "2"],
        &["--scheduler", "lookahead"],
    ] {
        let outcome = compiled.batch_run().args(composition).run(input);
        assert_eq!(outcome.lines(), lines, "{}", outcome.describe());
    }
}

#[test]
fn what_is_unrolled_is_what_the_oracle_says_in_every_batch() {
    let lines = trees().into_iter().zip([0, 1, 2, 3, 8, 17]);
    let input: String = lines
        .map(|(tree, length)| format!("{{\"t\":{tree},\"xs\":{}}}\n", list(length)))
        .collect();
    check_unrolled(UNROLLED, &input, "1");
}

#[test]
fn several_levels_and_code_for_gpus() {
    let text = "dim V, H
        param emb: f32[V, H]  param w: f32[H, H]  param u: f32[H, H]
        type List = End | Item(i32, List)
        type Tree = Leaf(i32) | Two(Tree, Tree)
        fn back(xs: List) -> f32[H] {
          match xs { End => zeros([H]), Item(k, rest) => tanh(emb[k] + back(rest) @ u) }
        }
        fn cell(t: Tree) -> f32[H] {
          match t { Leaf(k) => emb[k], Two(l, r) => tanh(cell(l) @ u + cell(r) @ w) }
        }
        fn main(xs: List, t: Tree) -> (f32[H], f32[H]) { (back(xs), cell(t)) }";
    let comb = |depth: usize| {
        let leaf = "{\"Leaf\":[1]}".to_owned();
        (0..depth).fold(leaf.clone(), |t, k| match k % 3 {
            0 => format!("{{\"Two\":[{t},{leaf}]}}"),
            1 => format!("{{\"Two\":[{leaf},{t}]}}"),
            _ => format!("{{\"Two\":[{t},{t}]}}"),
        })
    };
    let input: String = (0..7)
        .map(|n| format!("{{\"xs\":{},\"t\":{}}}\n", list(n), comb(n)))
        .collect();
    check_unrolled(text, &input, "2");
    let model = Model::from_text(text, &[("V", 5), ("H", 6)], &mut Rng::new(7));
    let call = model
        .batch_run()
        .args(&["--unroll", "1", "--device", "gpu-sim"]);
    let lines = call.run(&input).expect_code(0).lines();
    let expected = model.oracle_lines(&input);
    compare_records(&expected, &lines, Closeness::EachNumber(1e-5)).expect("the same records");
}

/// A chain of n steps takes half as many launches.
#[test]
fn unrolled_lists_take_half_the_launches() {
    let text = "dim V, H
        param emb: f32[V, H]  param u: f32[H, H]
        type List = End | Item(i32, List)
        fn back(xs: List) -> f32[H] {
          match xs { End => zeros([H]), Item(k, rest) => tanh(emb[k] + back(rest) @ u) }
        }
        fn main(xs: List) -> f32[H] { back(xs) }";
    let model = Model::from_text(text, &[("V", 5), ("H", 6)], &mut Rng::new(7));
    let input = format!("{{\"xs\":{}}}\n{{\"xs\":{}}}\n", list(20), list(20));
    let launches = |levels: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("stats.json");
        let call = model.batch_run().args(&["--unroll", levels, "--stats"]);
        call.arg(&path).run(&input).expect_code(0);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let stats: serde_json::Value = serde_json::from_str(&text).expect("the stats are JSON");
        stats["kernel_launches"].as_u64()
    };
    assert_eq!((launches("0"), launches("1")), (Some(20), Some(10)));
}
