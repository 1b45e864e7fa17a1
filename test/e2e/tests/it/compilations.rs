//! The models compiled in every way that the tools offer: a technique left out may cost time, never
//! a result.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::tools::run;
use cohort_e2e::{Model, Rng};

use crate::models::{MODELS, to_text};

/// How far f32 may be from f64, of the largest number of an instance's output.
const CLOSENESS: Closeness = Closeness::WholeOutput(1e-4);

/// A pass that `--without` takes.
struct Pass {
    name: String,
    /// The highest level that shows what it did.
    emit: &'static str,
}

/// Those passes, as the tool itself lists them.
fn optional_passes() -> Vec<Pass> {
    let program = MODELS[0].shipped().source;
    let refusal = run("batch-opt", &[program.into(), "--without=?".into()], "");
    let help = run("batch-opt", &["--help".into()], "").output;
    let emit = |name: &str| {
        let mut lines = help.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(&format!("--{name}")));
        let line = line.unwrap_or_else(|| panic!("no help for {name}"));
        match ["(level 0", "(level 1", "(level 2"]
            .iter()
            .any(|level| line.contains(level))
        {
            true => "--emit=batched",
            false => "--emit=target",
        }
    };
    let listed: Vec<Pass> = refusal
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(':').next())
        .map(|name| Pass {
            name: name.to_owned(),
            emit: emit(name),
        })
        .collect();
    assert!(
        listed.iter().any(|pass| pass.name == "hoist-operators"),
        "no list of passes from {}",
        refusal.describe()
    );
    listed
}

/// Compares a way to compile with the oracle, and with itself run in other batches.
#[track_caller]
fn check(model: &Model, input: &str, expected: &[String], way: &[&str]) {
    let compiled = model.compile(way);
    let run = |more: &[&str]| {
        let call = compiled.batch_run().args(more);
        call.run(input).expect_code(0)
    };
    let batched = run(&["--batch", "all"]);
    compare_records(expected, &batched.lines(), CLOSENESS)
        .unwrap_or_else(|message| panic!("{message}\nfrom {}", batched.describe()));
    for more in [
        &["--no-batch"][..],
        &["--batch", "3", "--threads", "2"],
        &["--without", "gather-fusion,sharing"],
        &["--without", "ragged-storage,shared-prelude"],
    ] {
        let other = run(more);
        assert_eq!(batched.lines(), other.lines(), "{}", other.describe());
    }
}

/// Compares every model at awkward dims, compiled in each of these ways that a predicate wants.
#[track_caller]
fn check_all(ways: &[Vec<&str>], mut wanted: impl FnMut(&Model, &[&str]) -> bool) {
    for case in MODELS {
        let mut rng = Rng::new(31);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, 14, &mut rng));
        let expected = model.oracle_lines(&input);
        for way in ways {
            if !wanted(&model, way) {
                continue;
            }
            check(&model, &input, &expected, way);
        }
    }
}

#[test]
fn a_technique_left_out_changes_no_result() {
    let passes = optional_passes();
    let all: Vec<&str> = passes.iter().map(|pass| pass.name.as_str()).collect();
    let all = all.join(",");
    let each = passes.iter().map(|pass| (pass.name.as_str(), pass.emit));
    let ways: Vec<(&str, &str)> = each.chain([(all.as_str(), "--emit=target")]).collect();
    let emitted: HashMap<&str, &str> = ways.iter().copied().collect();
    let ways: Vec<Vec<&str>> = (ways.iter())
        .map(|(names, _)| vec!["--without", names])
        .collect();
    let (hasher, mut done) = (RandomState::new(), HashSet::new());
    let mut last = None;
    check_all(&ways, |model, way| {
        // Most techniques find nothing to do in a model: what the code is made of is then what it was before.
        let mut is_new = |emit: &str, way: &[&str]| {
            let code = model.batch_opt(&[&[emit], way].concat());
            done.insert(hasher.hash_one(code.expect_code(0).output))
        };
        if last.replace(model.source.clone()) != Some(model.source.clone()) {
            is_new("--emit=batched", &[]);
            is_new("--emit=target", &[]);
        }
        is_new(emitted[way[1]], way)
    });
    assert!(done.len() > 5 * MODELS.len(), "techniques do something");
}

#[test]
fn every_granularity_gives_the_result_of_the_oracle() {
    let ways = [
        vec!["--granularity", "operator"],
        vec!["--granularity", "function"],
        vec!["--granularity", "operator", "--without", "operand-reuse"],
    ];
    check_all(&ways, |_, _| true);
}

/// A program of instance dims, each operation of which is a unit of scheduling.
#[track_caller]
fn check_by_operator(text: &str) {
    let mut rng = Rng::new(33);
    let model = Model::from_text(text, &[], &mut rng);
    let mut instances = Instances::new(&model.program, 3);
    let instances: Vec<_> = (0..5)
        .map(|index| {
            let shape = Shape::nth(index, 6, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&instances);
    let expected = model.oracle_lines(&input);
    check(&model, &input, &expected, &["--granularity", "operator"]);
}

#[test]
fn by_operator_a_reshape_of_known_dims_stays_apart_from_calls() {
    check_by_operator(
        "fn main(y: f32[m, 4]) -> f32[_] {
          let highest = max(concat(reshape(y, [m, 2, 2]), zeros([1, 2, 2]), axis = 0), axis = 0);
          reshape(sort(highest, axis = 0), [4])
        }",
    );
}

#[test]
fn by_operator_a_concatenation_of_positions_is_folded() {
    check_by_operator(
        "fn main(z: f32[n, m]) -> (f32[_, _, _], f32[n, m], f32[_, n, m]) {
          let places = 0.1 * f32(iota([n, m], 0));
          let both = stack([places, tanh(places)]);
          (transpose(both) @ both, sum(sin(both), axis = 0) + z, both * 2.0)
        }",
    );
}

/// Two directions of one network, and two layers on each other, all from one function.
const WEIGHTS_AS_ARGUMENTS: &str = "
    dim V, H
    param emb: f32[V, H]
    param wf: f32[H, H]   param bf: f32[H]
    param wb: f32[H, H]   param bb: f32[H]
    param wo: f32[H, H]   param bo: f32[H]

    fn layer(x: f32[H], w: f32[H, H], b: f32[H]) -> f32[H] { tanh(x @ w + b) }

    fn rnn(words: [i32], i: i32, h: f32[H], w: f32[H, H], b: f32[H]) -> f32[H] {
      if i == len(words) { h } else { rnn(words, i + 1, layer(emb[words[i]] + h, w, b), w, b) }
    }

    fn main(words: [i32]) -> f32[H] {
      let forward = rnn(words, 0, zeros([H]), wf, bf);
      let backward = rnn(reverse(words), 0, zeros([H]), wb, bb);
      layer(layer(forward, wo, bo) + backward, wf, bb)
    }";

#[test]
fn functions_take_their_weights_as_arguments() {
    let mut rng = Rng::new(32);
    let dims = [("V", 19), ("H", 33)];
    let model = Model::from_text(WEIGHTS_AS_ARGUMENTS, &dims, &mut rng);
    let mut instances = Instances::new(&model.program, model.vocabulary());
    let instances: Vec<_> = (0..12)
        .map(|index| {
            let shape = Shape::nth(index, 12, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&instances);
    let expected = model.oracle_lines(&input);
    for way in [
        &[][..],
        &["--without", "specialise-functions"],
        &["--granularity", "function"],
    ] {
        check(&model, &input, &expected, way);
    }
}

/// Products side by side, of one left side and of two, from a bias and from none.
const VOTES: &str = "
    dim H, C
    param wl: f32[H, C]  param bl: f32[C]  param wc: f32[H, 1]  param ws: f32[H, 1]  param bs: f32[1]
    param wz: f32[H, H]  param uz: f32[H, H]  param wr: f32[H, H]  param ur: f32[H, H]
    fn main(x: f32[H], g: f32[H]) -> (f32[C], f32[1], f32[1], f32[H]) {
      let z = sigmoid(x @ wz + g @ uz);
      let h = z * tanh(x @ wr + g @ ur);
      (h @ wl + bl, h @ wc, sigmoid(h @ ws + bs), (z - h) * h)
    }";

#[test]
fn products_side_by_side_have_the_same_bits() {
    let check = |model: &Model, input: &str| {
        let run = |way: &[&str]| model.batch_run().args(way).run(input).expect_code(0);
        let apart = run(&["--without", "fuse-products"]);
        let fused = run(&[]);
        assert_eq!(apart.lines(), fused.lines(), "{}", fused.describe());
    };
    for case in MODELS {
        let mut rng = Rng::new(37);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, 14, &mut rng));
        check(&model, &input);
    }
    let votes = Model::from_text(VOTES, &[("H", 50), ("C", 5)], &mut Rng::new(41));
    let line = |seed: u32| {
        let row = |from: u32| -> Vec<f32> {
            (0..50)
                .map(|at| ((from + 7 * at) % 23) as f32 / 11.0 - 1.0)
                .collect()
        };
        format!("{{\"x\":{:?},\"g\":{:?}}}\n", row(seed), row(seed * 5 + 3))
    };
    check(&votes, &(0..13).map(line).collect::<String>());
}

/// Values that the program builds and takes apart itself: as arguments that may be missing, for a call of a
/// recursion, and again where a match around has taken them apart.
const CONSTRUCTORS_KNOWN: &str = "
    dim V, H
    param emb: f32[V, H]
    param w: f32[H, H]
    type Optional = None | Some(f32[H])
    type Tree = Leaf(i32) | Scaled(f32, Tree) | Node(Tree, Tree)

    fn add(x: f32[H], other: Optional) -> f32[H] {
      match other { None => x, Some(h) => x + h @ w }
    }

    fn cell(x: f32[H], left: Optional, right: Optional) -> f32[H] { tanh(add(add(x, left), right)) }

    fn encode(t: Tree) -> f32[H] {
      match t {
        Leaf(i) => cell(emb[i], None, None),
        Scaled(by, below) => match below {
          Leaf(i) => encode(below) * by,
          Scaled(more, below) => encode(Scaled(by * more, below)),
          Node(l, r) => cell(encode(l) - encode(r), Some(by * encode(Leaf(1))), None)
        },
        Node(l, r) => {
          let left = encode(l);
          let right = encode(r);
          cell(left + right, Some(left), Some(right))
        }
      }
    }

    fn main(t: Tree) -> f32[H] { encode(Node(Scaled(0.5, t), Leaf(2))) }";

#[test]
fn constructors_are_known_where_values_are_built() {
    let mut rng = Rng::new(34);
    let model = Model::from_text(CONSTRUCTORS_KNOWN, &[("V", 19), ("H", 33)], &mut rng);
    let mut instances = Instances::new(&model.program, model.vocabulary());
    let instances: Vec<_> = (0..12)
        .map(|index| {
            let shape = Shape::nth(index, 12, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&instances);
    let expected = model.oracle_lines(&input);
    for way in [
        &[][..],
        &["--without", "specialise-constructors"],
        &["--granularity", "function"],
        &["--granularity", "operator"],
    ] {
        check(&model, &input, &expected, way);
    }
}

/// Leaves of one row and of two, calls that need products, parts of one, or none, and calls from outside.
const LEAVES: &str = "
    dim V, H
    param emb: f32[V, H]
    param u: f32[H, H]  param v: f32[H, H]  param w: f32[2*H, H]  param b: f32[H]
    type Tree = Leaf(i32) | Given(f32[H]) | Same(Tree) | Node(Tree, Tree)

    fn cell(t: Tree) -> (f32[H], f32[H]) {
      match t {
        Leaf(i) => (tanh(emb[i] @ u + b), emb[i]),
        Given(x) => (x, x * x),
        Same(s) => cell(s),
        Node(l, r) => {
          let (hl, cl) = cell(l);
          let (hr, cr) = other(r);
          (tanh(hl @ u + tanh(hr) @ v + b), 0.5 * cl + tanh(concat(hl, cr) @ w))
        }
      }
    }

    fn other(t: Tree) -> (f32[H], f32[H]) {
      match t {
        Leaf(i) => (emb[i], emb[0] - emb[i]),
        Given(x) => (x, b),
        Same(s) => { let (h, c) = cell(s); (tanh(h @ v), c) },
        Node(l, r) => {
          let (hl, cl) = cell(l);
          let (hr, _) = other(r);
          (tanh(hl @ u + hr), cl)
        }
      }
    }

    fn main(t: Tree) -> (f32[H], f32[H]) { let (h, c) = cell(t); (h @ u, c) }";

#[test]
fn leaves_share_products() {
    let mut rng = Rng::new(35);
    for width in [64, 67] {
        let model = Model::from_text(LEAVES, &[("V", 9), ("H", width)], &mut rng);
        let mut instances = Instances::new(&model.program, model.vocabulary());
        let instances: Vec<_> = (0..12)
            .map(|index| {
                let shape = Shape::nth(index, 12, &mut rng);
                instances.instance(&format!("i{index}"), shape, &mut rng)
            })
            .collect();
        let input = to_text(&instances);
        let expected = model.oracle_lines(&input);
        let code = |way: &[&str]| {
            let target = [&["--emit=target"], way].concat();
            model.batch_opt(&target).expect_code(0).output
        };
        let without = ["--without", "share-leaf-products"];
        assert_ne!(code(&[]), code(&without), "nothing is shared");
        for way in [&[][..], &without, &["--without", "split-products"]] {
            check(&model, &input, &expected, way);
        }
    }
}
