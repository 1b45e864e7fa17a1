//! Tensors of every rank whose dims differ by instance in any place: products, stacks, searches, slices
//! and reshapes. What the oracle makes of them is what they mean.

use crate::language::check;

#[test]
fn a_stack_of_host_scalars() {
    check(
        "fn main(x: f32, y: f32, k: i32, b: bool) -> (f32[3], i32[2], bool[1], f32[2, 2], f32[3]) {
          let v = stack([x, y, x * y]);
          let m = stack([stack([x, y]), stack([y, x])]);
          (v, stack([k, k + 1]), stack([b]), m, v * 2.0 - sum(m))
        }",
        &[],
        &[
            r#"{"x":1.5,"y":-2,"k":7,"b":true}"#,
            r#"{"x":0,"y":0.25,"k":-7,"b":false}"#,
        ],
    );
}

#[test]
fn arithmetic_with_a_stack_whose_length_nothing_else_has() {
    check(
        "fn main(xs: [f32], ys: [f32[3]], k: i32) -> (f32[_], f32[_, 3], f32[_], bool[_]) {
          let c = stack(map(range(k), |i| f32(i)));
          (1 - stack(xs), 2 * stack(ys), select(stack(xs) > 0.5, 1.0, 2.0), 1.5 >= c)
        }",
        &[],
        &[
            r#"{"xs":[1,2,0.25],"ys":[[1,2,3]],"k":2}"#,
            r#"{"xs":[],"ys":[],"k":0}"#,
            r#"{"xs":[0.5],"ys":[[1,2,3],[4,5,6]],"k":5}"#,
        ],
    );
}

#[test]
fn argmax_along_an_axis_before_an_instance_dim() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(q: f32[D, n], s: f32[n, D, m], k: i32[D, n]) -> (i32[n], i32[n, m], i32[n], i32[D], f32[n]) {
          let best = argmax(q, axis = 0);
          (best, argmax(s, axis = 1), argmax(k, axis = 0), argmax(w @ w), f32(argmax(transpose(q) @ w)) + max(q, axis = 0))
        }",
        &[("D", 3)],
        &[
            r#"{"q":[[1,2],[3,0],[3,5]],"s":[[[1],[2],[2]],[[5],[-1],[0]]],"k":[[1,2],[3,4],[0,9]]}"#,
            r#"{"q":[[],[],[]],"s":[],"k":[[],[],[]]}"#,
            r#"{"q":[[1],[2],[0]],"s":[[[],[],[]]],"k":[[1],[1],[1]]}"#,
        ],
    );
}

#[test]
fn rows_of_a_reshaped_value_by_a_tensor_of_indices() {
    check(
        "dim D, E
        param w: f32[D, E]
        fn main(x: f32[D, E], rows: i32[n]) -> (f32[n], f32[n], f32[D], f32[D*E]) {
          let line = reshape(x, [D*E]);
          (gather(line, rows), gather(reshape(tanh(x + w), [D*E]), rows), x @ gather(line, iota([E], 0)), line)
        }",
        &[("D", 3), ("E", 2)],
        &[
            r#"{"x":[[1,2],[3,4],[5,6]],"rows":[0,5,2]}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"rows":[]}"#,
            r#"{"x":[[0.5,2],[-3,4],[5,6]],"rows":[3]}"#,
        ],
    );
}

/// A product's rows lie apart in memory.
#[test]
fn products_whose_dims_are_joined() {
    check(
        "dim D, E
        param w: f32[E, D]
        fn main(x: f32[D, E], y: f32[n, D, E]) -> (f32[D*D], f32[n, D*D], f32[D*D, 1], f32[n]) {
          let p = reshape(y @ w, [n, D*D]);
          (reshape(x @ w, [D*D]), p, tanh(reshape(x @ w, [D*D, 1])), p @ reshape(x @ w, [D*D]))
        }",
        &[("D", 3), ("E", 2)],
        &[
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[[[1,0],[0,1],[1,1]],[[2,1],[0,1],[1,-1]]]}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[]}"#,
        ],
    );
}

/// The sums of one launch share memory on a GPU, one after another, and each with another number of columns.
#[test]
fn sums_of_one_launch_that_are_of_other_widths() {
    let rows = |count: usize| {
        let row = |row: usize| (0..16).map(move |at| ((row * 7 + at * 3) % 11) as f32 / 8.0 - 0.6);
        let rows: Vec<Vec<f32>> = (0..count).map(|number| row(number).collect()).collect();
        serde_json::json!({ "x": rows }).to_string()
    };
    let lines: Vec<String> = [28, 7, 0, 1, 2, 61].into_iter().map(rows).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        "dim A, B
        param p: f32[A, B]  param q: f32[A, B]  param r: f32[A, B]  param s: f32[A, B]
        param t: f32[B, A]  param u: f32[B, A]
        fn main(x: f32[n, A]) -> f32[n, A] {
          (x @ p + x @ q) @ t + max(x @ r, x @ s) @ u
        }",
        &[("A", 16), ("B", 13)],
        &lines,
    );
}

#[test]
fn products_of_batches_of_matrices() {
    check(
        "dim D, H
        param w: f32[D, H]  param heads: f32[2, H, D]  param v: f32[H]
        fn main(x: f32[n, m, D], y: f32[2, n, D], z: f32[D]) -> (f32[n, m, H], f32[n, m], f32[2, n, H], f32[2, n, n], f32[2, 2, D], f32[2, D], f32[n, m, m]) {
          let rows = x @ w;
          let scores = y @ transpose(y);
          let mixed = stack([v, v + 1.0]) @ heads;
          (rows, tanh(rows) @ v, softmax(scores) @ (y @ w), scores, mixed, mixed[0] * (transpose(heads) @ v), x @ transpose(x))
        }",
        &[("D", 3), ("H", 5)],
        &[
            r#"{"x":[[[1,2,3],[4,5,6]],[[0,1,0],[1,0,1]]],"y":[[[1,2,3],[0,0,1]],[[1,0,0],[0,1,0]]],"z":[1,2,3]}"#,
            r#"{"x":[],"y":[[],[]],"z":[1,2,3]}"#,
            r#"{"x":[[[0.5,-2,3]]],"y":[[[1,2,3]],[[-1,0.25,0]]],"z":[1,2,3]}"#,
            r#"{"x":[[],[]],"y":[[[1,2,3],[0.1,0,1]],[[-1,0.25,0],[1,1,1]]],"z":[1,2,3]}"#,
        ],
    );
}

#[test]
fn slices_of_other_axes_than_the_first() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[D, n], k: i32) -> (f32[D, _], f32[D, _], f32[D, 2]) {
          (w @ x[.., 0..k], x[.., k..], x[.., 0..2])
        }",
        &[("D", 2)],
        &[
            r#"{"x":[[1,2,3],[4,5,6]],"k":2}"#,
            r#"{"x":[[1,2],[4,5]],"k":0}"#,
            r#"{"x":[[1,2],[4,5]],"k":3}"#,
        ],
    );
}

/// Each element is twenty rounds of what the one before it is made of.
#[test]
fn random_tensors_of_any_lengths() {
    check(
        "fn main(n: i32, x: f32[k, 2]) -> (f32[_], f32[k, 2], f32[3, 2], f32[k, 2, k]) {
          (random(n + 1, [n]), random(2, [k, 2]) + x, random(i32(sum(x)), [3, 2]), random(9, [k, 2, k]))
        }",
        &[],
        &[
            r#"{"n":3,"x":[[1,2],[3,4]]}"#,
            r#"{"n":0,"x":[]}"#,
            r#"{"n":1,"x":[[5,6]]}"#,
        ],
    );
}

/// Of known lengths that come to nothing: at a dim of size 1, and where a recursion ends.
#[test]
fn slices_of_nothing() {
    check(
        "dim D, L
        param w: f32[L, D, D]
        fn total(x: f32[n]) -> f32 { if n == 1 { x[0] } else { x[0] + total(x[1..n]) } }
        fn last(x: f32[n]) -> f32 { if n == 0 { 0.5 } else { last(x[0..n - 1]) + x[n - 1] } }
        fn main(x: f32[D], y: f32[4], z: f32[n, D], k: i32[D]) ->
            (f32[D - 1], f32[D - 1], f32[n, D - 1], f32[n, D - 1], i32[D - 1], f32[D], f32, f32, f32[D]) {
          let rest = w[1..L];
          let nothing = zeros([n, D - 1]);
          let turned = if D == 1 { x } else { concat(x[1..D], x[0..1]) };
          let through = for i in range(L - 1) with (h = x @ w[0]) { h @ rest[i] };
          (x[1..D], x[0..D - 1] * 2.0, z[.., 1..D], nothing[.., 0..D - 1] + 1.0, k[1..D], turned, total(y), last(y), through)
        }",
        &[("D", 1), ("L", 1)],
        &[
            r#"{"x":[1.5],"y":[1,2,3,4],"z":[[1],[2]],"k":[3]}"#,
            r#"{"x":[-1],"y":[0,0.5,3,4],"z":[],"k":[0]}"#,
        ],
    );
}

/// One that is written as nothing is as good as one that comes to it.
#[test]
fn slices_that_end_where_they_begin() {
    check(
        "dim D
        param w: f32[D, D]
        fn rest(x: f32[n]) -> f32 { sum(x[n..n]) }
        fn main(x: f32[D], y: f32[n], z: f32[n, D], k: i32) ->
            (f32[0], f32[D], f32[n, D], f32[n, 0], i32, f32, f32) {
          let joined = concat(z[n..n], z, z[2..2], axis = 0);
          (x[D..D], concat(x[0..0], x), joined, z[.., 1..1], len(y[k..k]), rest(x) + rest(y), sum(z[0..0] @ w))
        }",
        &[("D", 3)],
        &[
            r#"{"x":[1.5,2,3],"y":[1,2],"z":[[1,2,3],[4,5,6]],"k":1}"#,
            r#"{"x":[1.5,2,3],"y":[],"z":[],"k":0}"#,
        ],
    );
}

/// How many heads there are may be a constant of the program, one too.
#[test]
fn attention_of_one_head_and_of_two() {
    for heads in [1, 2] {
        check(
            &format!(
                "let heads = {heads}
                fn main(x: f32[n, 4]) -> f32[n, 4] {{
                  concat(map(split(x, heads), split(x * 0.5, heads), split(x, heads), attend))
                }}"
            ),
            &[],
            &[
                r#"{"x":[[1,2,3,4],[0.5,-1,0,2]]}"#,
                r#"{"x":[[1,0,3,-4]]}"#,
                r#"{"x":[]}"#,
            ],
        );
    }
}

/// What a condition on lengths keeps from a call of known lengths need not fit these.
#[test]
fn branches_that_no_call_of_known_length_takes() {
    check(
        "fn head(x: f32[n]) -> f32 { if n > 5 && x[0] > 0.0 { sum(x[5..n]) } else { x[0] } }
        fn pairs(x: f32[n]) -> f32 { if n < 2 { sum(x) } else { pairs(x[2..n]) + x[0] * x[1] } }
        fn best(x: f32[n]) -> f32 { if n > 5 { let (v, _) = topk(x, 5); sum(v) } else { x[0] } }
        fn even(x: f32[n]) -> f32 { if n % 2 == 0 { sum(reshape(x, [n/2, 2])[.., 0]) } else { x[0] } }
        fn none(x: f32[n]) -> f32 { if n == 0 { 1.0 } else { none(x[1..n]) * 0.5 + x[0] } }
        fn main(x: f32[3], y: f32[8]) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32) {
          (head(x), head(y), pairs(x), pairs(y), best(x), best(y), even(x), even(y), none(x))
        }",
        &[],
        &[
            r#"{"x":[1,2,3],"y":[1,2,3,4,5,6,7,8]}"#,
            r#"{"x":[-1,0.5,2],"y":[-1,2,3,-4,5,6,7,8]}"#,
        ],
    );
}
