//! What one writes with tensors whose lengths differ by instance, lengths 0 and 1 included. What the
//! oracle makes of it is what it means; bits do not depend on the batch.

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};

use crate::models::to_text;

/// None, one, and ends of tiles and vectors.
const LENGTHS: [usize; 5] = [0, 1, 3, 28, 61];

/// As [`check_lengths`], with [`LENGTHS`].
#[track_caller]
fn check(text: &str, dims: &[(&str, u64)], failing: bool) {
    check_lengths(text, dims, failing, &LENGTHS);
}

/// Compares with the oracle, also on the simulated GPU, and bit for bit in other batches; `failing` tells whether some lengths are
/// errors of their instances.
#[track_caller]
fn check_lengths(text: &str, dims: &[(&str, u64)], failing: bool, lengths: &[usize]) {
    let mut rng = Rng::new(71);
    let model = Model::from_text(text, dims, &mut rng);
    let mut instances = Instances::new(&model.program, model.vocabulary().max(3));
    instances.lengths_from(lengths);
    let lines: Vec<_> = (0..14)
        .map(|index| {
            let shape = Shape::nth(index, 6, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&lines);
    let expected = model.oracle_lines(&input);
    let errors = expected.iter().filter(|line| line.contains("\"error\""));
    let errors = errors.count();
    assert!(
        errors < lines.len() && (errors > 0) == failing,
        "{expected:?}"
    );

    let compiled = model.compile(&[]);
    let run = |arguments: &[&str]| {
        let outcome = compiled.batch_run().args(arguments).run(&input);
        assert!(outcome.code < 2, "{}\nin\n{text}", outcome.describe());
        outcome.lines()
    };
    let batched = run(&[]);
    compare_records(&expected, &batched, Closeness::WholeOutput(1e-4))
        .unwrap_or_else(|message| panic!("{message}\nin\n{text}"));
    for arguments in [
        &["--no-batch"][..],
        &["--batch", "4", "--threads", "2"],
        &["--without", "ragged-storage"],
        &["--without", "gather-fusion", "--threads", "2"],
    ] {
        assert_eq!(batched, run(arguments), "{arguments:?} in\n{text}");
    }
    let simulated = ["--device", "gpu-sim"];
    let outcome = model.batch_run().args(&simulated).run(&input);
    assert!(outcome.code < 2, "{}\nin\n{text}", outcome.describe());
    compare_records(&expected, &outcome.lines(), Closeness::WholeOutput(1e-4))
        .unwrap_or_else(|message| panic!("{message}\nfrom {}\nin\n{text}", outcome.describe()));
}

#[test]
fn the_dims_of_a_result_have_its_order() {
    check(
        "dim A, B
        param p: f32[A, B]  param q: f32[A, B]
        fn main(y: f32[m, A], x: f32[n, A]) -> (f32[n, m], f32[m, n], f32[A, n]) {
          let s = (x @ p) @ transpose(y @ q);
          (s, transpose(s), transpose(x))
        }",
        &[("A", 13), ("B", 2)],
        false,
    );
}

#[test]
fn rows_are_pooled_and_picked() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D], i: i32) -> (f32[D], f32[D], f32, f32[D], f32[D], i32[D], i32) {
          let y = x @ w;
          let pooled = sum(y, axis = 0) / f32(n);
          (pooled, max(y, axis = 0), min(y), y[0], y[n - 1] + y[i], argmax(y, axis = 0), argmax(y[.., 0]))
        }",
        &[("D", 13)],
        true,
    );
}

#[test]
fn positions_are_made_of_lengths_alone() {
    check(
        "dim D, P
        param w: f32[D]  param table: f32[P, D]
        fn main(x: f32[n, D], u: f32[m]) -> (f32[n, D], f32[n, D], f32[n, m], f32[n, D]) {
          let position = f32(iota([n, D], 0));
          let wave = sin(position / (1.0 + f32(iota([n, D], 1))));
          let distance = abs(iota([n, m], 0) - iota([n, m], 1));
          (x + wave, x + reshape(f32(iota([n], 0)), [n, 1]) * w, f32(distance) * u, x + table[0..n])
        }",
        &[("D", 5), ("P", 61)],
        false,
    );
}

#[test]
fn sequences_are_cut_and_joined() {
    check(
        "dim D
        param w: f32[D, D]  param start: f32[1, D]
        fn main(x: f32[n, D], y: f32[m, D]) -> (f32[n + m, D], f32[D], f32[n, D], f32[_, D], f32[D]) {
          let both = concat(x @ w, y, axis = 0);
          let begun = concat(start, x, axis = 0);
          let shifted = concat(tanh(start), x, axis = 0)[0..n];
          let mixed = attend(begun, both, both);
          (both, mixed[0], shifted, both[n..n + m] @ w, sum(both[0..(n + m) / 2], axis = 0))
        }",
        &[("D", 5)],
        false,
    );
}

#[test]
fn a_slice_that_a_sequence_is_too_short_for() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D]) -> (f32[2, D], f32[n - 1, D]) {
          (tanh(x @ w)[0..2], x[0..n - 1] @ w + x[1..n])
        }",
        &[("D", 5)],
        true,
    );
}

#[test]
fn what_is_stacked_is_computed_with() {
    check(
        "dim V, D
        param emb: f32[V, D]  param w: f32[D, D]
        fn rows(words: [i32]) -> f32[n, D] { stack(map(words, |k| emb[k])) }
        fn average(x: f32[n, D]) -> f32[D] { sum(x, axis = 0) / (1.0 + f32(n)) }
        fn main(words: [i32], x: f32[n, D]) -> (f32[D], f32[_, D], f32[_, D], f32[_]) {
          let r = rows(words);
          let numbers = stack(map(words, |k| f32(k) * 0.5));
          (average(r @ w), attend(r @ w, r, r), tanh(stack(map(range(n), |i| x[n - 1 - i])) @ w), softmax(numbers))
        }",
        &[("V", 9), ("D", 4)],
        false,
    );
}

#[test]
fn halves_of_a_sequence_recur() {
    check(
        "dim D
        param w: f32[2*D, D]
        fn tree(x: f32[n, D]) -> f32[D] {
          if n == 0 { zeros([D]) } else {
            if n == 1 { x[0] } else { tanh(concat(tree(x[0..n/2]), tree(x[n/2..n])) @ w) }
          }
        }
        fn main(x: f32[n, D]) -> f32[D] { tree(x) }",
        &[("D", 4)],
        false,
    );
}

#[test]
fn a_known_shape_is_used_as_any() {
    check(
        "dim D
        param w: f32[D, D]  param p: f32[2, D]
        type Seq = Seq(f32[_, D])
        fn grow(x: f32[_, D], k: i32) -> f32[_, D] {
          if k > 0 { grow(concat(x, tanh(x @ w), axis = 0)[0..2], k - 1) } else { x }
        }
        fn total(s: Seq) -> f32[D] { match s { Seq(x) => sum(x @ w, axis = 0) } }
        fn main(x: f32[3, D], y: f32[n, D], m: i32) -> (f32[_, D], f32[_, D], f32[D], [f32[_, D]]) {
          let z: f32[_, D] = if n > 3 { x * 2.0 } else { if n > 0 { y } else { p } };
          let g: f32[_, D] = x;
          let longer = for i in range(m) with (v: f32[_, D] = y) { concat(v, tanh(x), axis = 0) };
          (z @ w, grow(g, m), total(Seq(x)) + total(Seq(p)) + total(Seq(y)), [longer, p, y])
        }",
        &[("D", 4)],
        false,
    );
}

#[test]
fn folds_behind_a_product_read_all_of_it() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D], y: f32[m, D]) -> (f32[n, m], f32[n, m], f32[n, m], f32[n, m], f32[n, m]) {
          let s = x @ w @ transpose(y);
          (softmax(s, axis = 0), s * sum(s, axis = 0), cumsum(s, axis = 0) - s, s / (1 + sum(s * s)), softmax(s) - s)
        }",
        &[("D", 4)],
        false,
    );
    check(
        "fn main(u: f32[m, n, 4]) -> f32[m, n, n] {
          let s = u @ transpose(u);
          s * reshape(sum(s, axis = 0), [1, n, n])
        }",
        &[],
        false,
    );
}

#[test]
fn folds_behind_a_product_read_rows_longer_than_its_blocks() {
    let text = "fn main(x: f32[2, 3], y: f32[n, 3]) -> f32[2, n] { softmax(x @ transpose(y)) }";
    let mut rng = Rng::new(72);
    let model = Model::from_text(text, &[], &mut rng);
    let mut instances = Instances::new(&model.program, 3);
    instances.lengths_from(&[2100]);
    let input = to_text(&[instances.instance("long", Shape::nth(0, 6, &mut rng), &mut rng)]);
    let outcome = model.batch_run().run(&input).expect_code(0);
    let expected = model.oracle_lines(&input);
    compare_records(&expected, &outcome.lines(), Closeness::WholeOutput(1e-4))
        .unwrap_or_else(|message| panic!("{message}"));
}

#[test]
fn positions_are_read_by_the_host_and_computed_with() {
    check(
        "fn main(z: f32[n, m]) -> (f32[_, _], f32[n, m]) {
          let i = f32(iota([n, m], 1));
          (concat(i, i)[.., 1..m + 1], tanh(i) + sum(i))
        }",
        &[],
        false,
    );
}

#[test]
fn a_concatenation_becomes_one_of_any_length() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(g: f32[3, n, D]) -> (f32[_, _, _], f32[_, n, D]) {
          let y = concat(transpose(g @ w), ones([2, D, n]), axis = 0);
          (y, tanh(concat(g, g * 2.0, axis = 0)) + sum(y))
        }",
        &[("D", 4)],
        false,
    );
}

#[test]
fn concatenations_are_reshaped_across_their_parts() {
    check(
        "fn main(x: f32[2, n], y: f32[4, n], u: f32[m, n, 2], v: f32[m, n, 4])
            -> (f32[6, 1, n], f32[2, 3, n], f32[2, 3, 3], f32[m, n, 2, 2], f32[_, _]) {
          let z = concat(x, y, axis = 0);
          let a = reshape(tanh(z), [2, 3, n]);
          let b = reshape(concat(u, v, axis = 2), [m, n, 2, 3]);
          (reshape(z, [6, 1, n]), a, a @ transpose(a), b @ transpose(b), sum(z, axis = 0) + z)
        }",
        &[],
        false,
    );
}

#[test]
fn a_known_length_is_used_as_any_in_between() {
    check(
        "fn reversed(x: f32[3, n, 5]) -> f32[_, n, 5] { stack(map(range(3), |i| x[3 - 1 - i])) }
        fn main(x: f32[3, n, 5]) -> (f32, f32[_, n], f32[_, n]) {
          let y = reversed(x);
          (sum(y * y), sum(tanh(y), axis = 2) @ zeros([n, n]), softmax(max(y * 0.5, axis = 2), axis = 0))
        }",
        &[],
        false,
    );
}

#[test]
fn concatenations_behind_several_lengths() {
    check(
        "dim D
        param b: f32[D]
        fn main(x: f32[n, D], y: f32[m, D]) -> (f32[n, m, 2*D], f32[n, 2*D]) {
          let d = reshape(x + b, [n, 1, D]) - reshape(y, [1, m, D]);
          let c = concat(tanh(d), sin(d), axis = 2);
          let own = concat(attend(x, y, y), x, axis = 1);
          (0.5 * c, own)
        }",
        &[("D", 4)],
        false,
    );
}

#[test]
fn a_single_column_joins_others_and_replaces_none() {
    check(
        "fn main(u: f32[m, n, 4]) -> (f32[m, n], f32[m, n, 5], f32[m, n, 5]) {
          let v = f32(argmax(concat(u, zeros([m, n, 1]), axis = 2), axis = 2));
          let totals = cumsum(u, axis = 1);
          let before = concat(ones([m, n, 1]), tanh(totals), axis = 2) * 2.0;
          (v * reshape(sum(v, axis = 1), [m, 1]), before, concat(totals, ones([m, n, 1]), axis = 2))
        }",
        &[],
        false,
    );
}

#[test]
fn recursions_follow_one_another() {
    check(
        "dim D
        param w: f32[D, D]
        fn f(x: f32[n, D], k: i32) -> f32[n, D] { if k > 0 { tanh(f(x @ w, k - 1)) } else { x } }
        fn main(x: f32[n, D], k: i32) -> f32[n, D] { f(tanh(f(x, k % 4) @ w) + 1, k % 3) }",
        &[("D", 4)],
        false,
    );
}

#[test]
fn rows_that_indices_choose() {
    check(
        "dim V, D
        param emb: f32[V, D]  param pos: f32[V, D]  param w: f32[D, D]
        fn main(words: i32[n], more: [i32], three: i32[3]) -> (f32[n, D], f32[n, D], f32[D], f32[3, D]) {
          let x = gather(emb, words) + gather(pos, iota([n], 0) * 0 + 2);
          let y = softmax((x @ w) @ transpose(x)) @ x;
          (y, gather(pos, argmax(y @ transpose(w))), sum(gather(emb, stack(more)), axis = 0), gather(emb, three) @ w)
        }",
        &[("V", 29), ("D", 13)],
        false,
    );
}

#[test]
fn a_number_of_rows_is_read_at_two_depths() {
    // The mean's divisor is read by sums of two axes, of which one is of rows that wait for the other.
    check(
        "fn main(z: f32[n, m], v: f32[n]) -> (f32[_, _], f32[_, _, _]) {
          let a = gather(z - mean(z, axis = 0), argsort(v));
          let b = one_hot(argsort(z), 3) - mean(one_hot(argsort(z), 3), axis = 0);
          (a, b)
        }",
        &[],
        false,
    );
}

#[test]
fn a_product_reads_a_slice_over_a_concatenations_seam() {
    check(
        "fn main(u: f32[m, n, 4]) -> (f32[_, _, _], f32[_, _, _], f32[_, _, _]) {
          let a = concat(u, u)[.., .., 1..5];
          let b = tanh(concat(u, u))[.., .., 3..6];
          let c = transpose(concat(u, 2.0 * u)[.., .., 1..5]);
          (a @ transpose(a), b @ transpose(b), transpose(c) @ c)
        }",
        &[],
        false,
    );
}

#[test]
fn what_is_sorted_is_made_once() {
    // A sum made anew where elements are compared may be taken in another order, and then an element
    // is not equal to itself.
    check(
        "fn main(z: f32[n, m]) -> (f32[_, _], i32[_, _], f32[_, _]) {
          let a = tanh(0.1 * z * reshape(sum(z, axis = 1), [n, 1]));
          let b = softmax(z, axis = 0);
          (sort(a, axis = 0), argsort(b, axis = 1), sort(transpose(b), axis = 0))
        }",
        &[],
        false,
    );
}

#[test]
fn batched_products_are_summed_over_joined_dims() {
    check(
        "dim F
        param w: f32[8, F]
        fn main(u: f32[m, n, 4], v: f32[m, 8, 3]) -> (f32[m, n, F], f32[m, n, 3], f32[m, n, F]) {
          let halves = concat(map(split(u * u, 2), |h| h * 2.0));
          (concat(u, 2.0 * u) @ w, tanh(concat(u, halves)) @ v, concat(halves, u) @ w)
        }",
        &[("F", 5)],
        false,
    );
}

#[test]
fn parts_of_known_size_make_a_dim_as_long_as_a_length() {
    check(
        "fn main(u: f32[m, n, 4]) -> (f32[_, _, _], f32[_, _, _], f32[_, _, _]) {
          let a = concat(map(split(u, 2), |h| h * 2.0));
          (a, a @ transpose(a), a[.., .., 1..3] - 1.0)
        }",
        &[],
        false,
    );
}

#[test]
fn folds_read_several_parts_of_a_concatenation() {
    check(
        "fn main(y: f32[n], z: f32[n], p: f32[n, 5], a: f32[3, n], b: f32[4, n], u: f32[n, k, m], c: f32[n, m, 3])
            -> (f32[2, 5], f32[7, 5], f32[n, k, _], f32[2, 2], f32[n, n], f32[n], f32[7, 7], f32[3, 5], f32[_, _, _]) {
          let both = stack([y, z]);
          let rows = concat(a, tanh(b), axis = 0);
          let columns = concat(c, c * 2.0, axis = 2);
          (both @ p, rows @ p, u @ columns, both @ transpose(stack([z, y])), transpose(both) @ both,
            max(sin(rows), axis = 0), softmax(rows) @ transpose(rows), rows[2..5] @ p,
            concat(concat(c, columns, axis = 2), ones([n, m, 1]), axis = 2) @ concat(a, rows, axis = 0))
        }",
        &[],
        false,
    );
}

/// What is made of a value of known shape that is used as one of any has lengths, whatever folds.
#[test]
fn a_widened_value_is_computed_with() {
    check(
        "dim D
        param w: f32[4, D]
        fn again(x: f32[a], k: i32) -> f32[a] { if k > 0 { again(tanh(x) + 0.5, k - 1) } else { x } }
        fn main(k: f32[3], m: f32[3, 4], z: f32[n], i: i32)
            -> (f32[_], f32[_], f32[_], i32, f32[_, D], f32[_], f32[_], f32[_]) {
          let y: f32[_] = k;
          let d = y - mean(y);
          let rows: f32[_, 4] = m;
          let steps = for j in range(3) with (h: f32[_] = y) { tanh(h) * 0.5 + h };
          (tanh(y) + 1.0, softmax(y) + d / sqrt(mean(d * d) + 0.1), steps, argmax(y),
           stack(map(range(3), |j| tanh(rows[j] @ w))), tanh(concat(y, z)), again(k, abs(i) % 3), sort(y))
        }",
        &[("D", 5)],
        false,
    );
}

/// The lengths of a function's argument are numbers where it is called.
#[test]
fn functions_of_any_length_take_known_ones() {
    check(
        "dim D
        param g: f32[D]
        fn zero(x: f32[a]) -> f32[a] { zeros([a]) + 1.0 }
        fn places(x: f32[a]) -> f32[a] { f32(iota([a], 0)) * x }
        fn less(x: f32[a], y: f32[b]) -> (f32, f32[_]) { (sum(zeros([a - b])), tanh(zeros([a - b + 2]) + 1.0)) }
        fn attend(x: f32[a, D]) -> f32[a, D] { softmax(x @ transpose(x)) @ x * g }
        fn main(k: f32[3], one: f32[1], x: f32[n, D], m: f32[3, D])
            -> (f32[3], f32[1], f32[_], f32, f32, f32[_], f32[3, D], f32[n, D]) {
          let wide: f32[_] = one;
          let (nothing, two) = less(x[.., 0], x[.., 1]);
          let (none, _) = less(k, k * 2);
          (zero(k) + k, places(one), places(wide), nothing, none, two, attend(m) + m, attend(x))
        }",
        &[("D", 4)],
        false,
    );
}

/// Vectors are of sixteen rows where a row is one number, and long calls are computed one by one.
#[test]
fn rows_of_one_number_each() {
    let text = "type Expr = | Column(i32) | Number(f32) | Sum(Expr, Expr) | Odd(Expr)
        fn eval(e: Expr, x: f32[n, 3], i: i32[n], b: bool[n]) -> f32[n] {
          match e {
            Column(k) => x[.., k % 3],
            Number(c) => fill([n], c),
            Sum(a, c) => sin(eval(a, x, i, b)) + eval(c, x, i, b),
            Odd(a) => {
              let v = eval(a, x, i, b);
              select(b && v > 0, v / f32(i % 7 + 8), exp(-abs(v)) + max(x[.., 0], x[.., 2]))
            }
          }
        }
        fn main(e: Expr, x: f32[n, 3], i: i32[n], b: bool[n]) -> (f32[n], i32[n], bool[n], f32, f32[n]) {
          let y = eval(e, x, i, b);
          (y, i32(4 * y) / (i + 1), y > x[.., 1], sum(y), max(x, axis = 1))
        }";
    check_lengths(text, &[], false, &LENGTHS);
    // So many rows a call that no list of them is written.
    check_lengths(text, &[], false, &[0, 1, 61, 257, 1000]);
}
