//! Lengths that the instance computes: joined, split, cut, stacked, compared, and those of nothing.

use crate::language::check;

#[test]
fn a_computed_index_reads_any_tensor() {
    check(
        "dim D, C
        param w: f32[D, C]
        fn main(x: f32[D], y: i32, n: i32) -> (f32, f32[C], f32, [f32], f32) {
          let p = softmax(x @ w);
          let q = f32(reshape(iota([C*C], 0), [C, C]));
          let best = argmax(p);
          let all = map(range(n), |i| q[i, y] * p[i]);
          (-log(p[y]), q[y] + q[.., y], p[best] + q[best, y], all, sum(all))
        }",
        &[("D", 3), ("C", 5)],
        &[
            r#"{"x":[0.5,-1,2],"y":2,"n":5}"#,
            r#"{"x":[0.5,1,-2],"y":0,"n":0}"#,
            r#"{"x":[0.5,1,-2],"y":5,"n":1}"#,
            r#"{"x":[0.5,1,-2],"y":-1,"n":1}"#,
            r#"{"x":[0.5,1,-2],"y":4,"n":6}"#,
        ],
    );
}

#[test]
fn slices_and_stacks_of_rows_that_have_lengths() {
    check(
        "fn main(s: f32[n, n], k: i32) -> (f32[_, n], f32, f32[_, n, n], f32[3, n]) {
          let t = s[0..k];
          let rows = map(range(n), |i| s[n - 1 - i]);
          let all = stack([s, s * 2, exp(s)]);
          (t, sum(t) + sum(stack(rows) @ s), all, sum(all, axis = 2))
        }",
        &[],
        &[
            r#"{"s":[[1,2,3],[4,5,6],[7,8,9]],"k":2}"#,
            r#"{"s":[[1,2,3],[4,5,6],[7,8,9]],"k":0}"#,
            r#"{"s":[[1,2],[4,5]],"k":3}"#,
            r#"{"s":[[1,2],[4,5]],"k":-1}"#,
            r#"{"s":[],"k":0}"#,
            r#"{"s":[[0.5]],"k":1}"#,
        ],
    );
}

#[test]
fn concatenations_along_any_axis() {
    check(
        "fn main(a: f32[n, m], b: f32[n, k], c: f32[n, 2])
            -> (f32[n, m + k + 2], f32[m + k + m, n], f32[n, 2*m], f32[n, n], f32[2, n, m + 1]) {
          let x = concat(a, b, c);
          let both = concat(a, a);
          let cube = stack([concat(a, ones([n, 1])), concat(ones([n, 1]), a)]);
          (x, concat(transpose(a), transpose(b), transpose(a), axis = 0), both,
           both @ transpose(both), exp(cube))
        }",
        &[],
        &[
            r#"{"a":[[1,2,3],[4,5,6]],"b":[[7],[8]],"c":[[9,10],[11,12]]}"#,
            r#"{"a":[[1]],"b":[[7,0.5]],"c":[[9,10]]}"#,
            r#"{"a":[],"b":[],"c":[]}"#,
            r#"{"a":[[],[],[]],"b":[[1],[2],[3]],"c":[[1,2],[3,4],[5,6]]}"#,
        ],
    );
}

#[test]
fn reshapes_join_and_split_lengths() {
    check(
        "dim D
        param b: f32[D]
        fn main(x: f32[n, D], y: f32[m, 4])
            -> (f32[n*D], f32[n, D], f32[2*m, 2], f32[4, m], f32[m*2, 2], f32, f32[m, 4]) {
          let flat = reshape(x, [n*D]);
          (flat, reshape(flat * 2, [n, D]) * b, reshape(y, [2*m, 2]), reshape(y, [4, m]),
           reshape(exp(y), [m*2, 2]), sum(reshape(y, [m*4]) * 0.5),
           reshape(transpose(reshape(y, [4, m])), [m, 4]))
        }",
        &[("D", 3)],
        &[
            r#"{"x":[[1,2,3],[4,5,6]],"y":[[1,2,3,4],[5,6,7,8],[9,10,11,12]]}"#,
            r#"{"x":[[1,2,3]],"y":[]}"#,
            r#"{"x":[],"y":[[1,2,3,4]]}"#,
        ],
    );
}

#[test]
fn half_of_an_odd_length_is_an_error() {
    check(
        "fn main(x: f32[n]) -> (f32[n/2, 2], f32[2, n/2], f32) {
          let pairs = reshape(x, [n/2, 2]);
          (pairs, reshape(x, [2, n/2]), sum(pairs[.., 0] * pairs[.., 1]))
        }",
        &[],
        &[
            r#"{"x":[1,2,3,4]}"#,
            r#"{"x":[1,2,3]}"#,
            r#"{"x":[]}"#,
            r#"{"x":[5,6]}"#,
        ],
    );
}

#[test]
fn arrays_of_known_shape_are_arrays_of_any() {
    check(
        "dim D
        param b: f32[D]
        fn f(xs: [f32[_, D]]) -> [f32[D]] { map(xs, |x| sum(x, axis = 0) + b) }
        fn g(xs: [(i32, [f32[_, D]])]) -> [f32[D]] {
          map(xs, |(k, x)| f32(k) * sum(f(x)))
        }
        fn main(x: f32[3, D], y: f32[n, D]) -> ([f32[D]], [f32[D]], [f32[D]]) {
          (f([x, x]), f([y, y]), g([(2, [x]), (3, [x, x])]))
        }",
        &[("D", 2)],
        &[
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[[1,2]]}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[]}"#,
        ],
    );
}

#[test]
fn lengths_that_are_equal_by_construction_are_equal() {
    check(
        "dim D
        param emb: f32[7, D]
        fn main(words: [i32], x: f32[n, D], k: i32) -> (f32[_, D], f32[_, D], f32[_, D], f32[_, D]) {
          let a = stack(map(words, |w| emb[w]));
          let b = stack(reverse(map(words, |w| sin(emb[w]))));
          let more = push(map(words, |w| x[0]), x[0]);
          let c = x[0..k] + x[n - k..n] * 0.5 + x[0..k];
          let i = k + 1;
          let d = x[i..i + k] + stack(map(range(len(words)), |j| x[0]))[0..k];
          (a + b, concat(a, b[0..1], axis = 0) + stack(more), c, d)
        }",
        &[("D", 3)],
        &[
            r#"{"words":[1,2,3],"x":[[1,2,3],[4,5,6],[7,8,9],[1,0,1],[0,2,0]],"k":2}"#,
            r#"{"words":[1],"x":[[1,2,3],[4,5,6],[7,8,9]],"k":1}"#,
            r#"{"words":[1],"x":[[1,2,3]],"k":0}"#,
            r#"{"words":[6,5],"x":[[1,2,3]],"k":2}"#,
        ],
    );
}

#[test]
fn host_integers_are_lengths() {
    check(
        "dim D
        param b: f32[D]
        fn main(x: f32[n, D], k: i32) -> (f32[_, D], f32[_], i32[_, _], f32[_, D], f32) {
          let z = zeros([k, D]) + x[0..k];
          let m = argmax(x[.., 0]) + 1;
          let i = iota([m, k + 1], 1);
          (z, fill([k - 1], 2.5), i, concat(ones([k, D]), z + b, axis = 0), sum(random(1, [k])))
        }",
        &[("D", 2)],
        &[
            r#"{"x":[[1,2],[3,4],[5,6]],"k":2}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"k":1}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"k":0}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"k":4}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"k":-1}"#,
        ],
    );
}

#[test]
fn an_annotation_asks_whether_lengths_are_equal() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D], y: f32[m, D], xs: [f32[D]], k: i32) -> (f32[n, D], f32[_, D], f32[3, D], f32[n, n]) {
          let a: f32[n, D] = y;
          let b: f32[n, D] = stack(xs) @ w;
          let c: f32[k, D] = y;
          let d: f32[3, D] = x + a;
          let e: f32[n, n] = x @ transpose(y);
          (a + b, c + x[0..k], tanh(d @ w), e)
        }",
        &[("D", 2)],
        &[
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[[1,2],[3,4],[5,6]],"xs":[[0,1],[2,1],[1,1]],"k":3}"#,
            r#"{"x":[[1,2],[3,4]],"y":[[1,2],[3,4]],"xs":[[0,1],[2,1]],"k":2}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[[1,2],[3,4]],"xs":[[0,1],[2,1],[1,1]],"k":3}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[[1,2],[3,4],[5,6]],"xs":[[0,1],[2,1]],"k":3}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[[1,2],[3,4],[5,6]],"xs":[[0,1],[2,1],[1,1]],"k":2}"#,
        ],
    );
}

/// The elements of a vector are tensors' scalars also where its length is asked for.
#[test]
fn an_annotation_asks_for_the_length_of_a_vector() {
    check(
        "fn main(x: f32[n], y: f32[m], k: i32) -> (f32[n], f32[n]) {
          let a: f32[n] = y[0..k];
          let b: f32[n] = y[0..3];
          (x + a, b)
        }",
        &[],
        &[
            r#"{"x":[1,2,3],"y":[4,5,6,7],"k":3}"#,
            r#"{"x":[1,2,3],"y":[4,5,6,7],"k":2}"#,
            r#"{"x":[1,2],"y":[4,5,6,7],"k":2}"#,
        ],
    );
}

#[test]
fn tensors_of_nothing() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D]) -> (f32[0, D], f32[n, D], f32[n, D], f32, f32[D, 0], i32[0]) {
          let z = zeros([0, D]);
          (z @ w, concat(z, x, axis = 0), (x @ transpose(z)) @ z, sum(z), fill([D, 0], 1.5), iota([0], 0))
        }",
        &[("D", 3)],
        &[r#"{"x":[[1,2,3],[4,5,6]]}"#, r#"{"x":[]}"#],
    );
}

#[test]
fn a_column_by_a_computed_index() {
    check(
        "fn main(s: f32[n, m], k: i32[n, m], b: bool[n, m], i: i32) -> (f32[n], f32[n], i32[n], bool[n], f32) {
          let best = argmax(max(s, axis = 0));
          (s[.., i], s[.., best] * 2, k[.., best], b[.., i], sum(transpose(s)[best]))
        }",
        &[],
        &[
            r#"{"s":[[1,2,3],[4,9,6]],"k":[[1,-2147483648,3],[4,5,6]],"b":[[true,false,true],[false,false,true]],"i":2}"#,
            r#"{"s":[["NaN",-0.0],["-Infinity",0.5]],"k":[[1,2],[3,4]],"b":[[true,false],[false,true]],"i":0}"#,
            r#"{"s":[[-1,"Infinity"]],"k":[[-7,-8]],"b":[[true,false]],"i":1}"#,
            r#"{"s":[[1,2]],"k":[[1,2]],"b":[[true,false]],"i":2}"#,
            r#"{"s":[[1,2]],"k":[[1,2]],"b":[[true,false]],"i":-1}"#,
        ],
    );
}

#[test]
fn a_tensor_that_is_compared_with_itself() {
    check(
        "fn main(x: f32[n, 4], k: i32[n], m: i32)
            -> (bool[n, 1], f32[n, 4], bool[n], bool[_], i32[_, _], bool[n, n]) {
          let p = iota([n, 1], 0);
          (iota([n, 1], 0) == iota([n, 1], 0), x + f32(iota([n, 4], 1) >= iota([n, 4], 1)),
           k + 0 != k, iota([m], 0) <= iota([m], 0), i32(iota([m, n], 1) < iota([m, n], 1)),
           (k < 3) != (k < 3) && p == transpose(p))
        }",
        &[],
        &[
            r#"{"x":[[1,2,3,4],[5,6,7,8]],"k":[1,2],"m":3}"#,
            r#"{"x":[[1,2,3,4]],"k":[3],"m":0}"#,
            r#"{"x":[],"k":[],"m":1}"#,
        ],
    );
}

#[test]
fn a_stack_of_ragged_values_is_a_result() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D], y: f32[n, D], s: f32[n, m]) -> (f32[2, n, D], f32[3, n, m], f32[2, n, D]) {
          (stack([x, y]), stack([s, exp(s), s * 2]), stack([x @ w, y + 1]))
        }",
        &[("D", 3)],
        &[
            r#"{"x":[[1,2,3],[4,5,6]],"y":[[0,1,0],[1,0,1]],"s":[[1],[2]]}"#,
            r#"{"x":[],"y":[],"s":[]}"#,
            r#"{"x":[[1,2,3]],"y":[[1,1,1]],"s":[[]]}"#,
        ],
    );
    check(
        "fn main(x: f32[n, 2], y: f32[n, 2]) -> f32[2, n, 2] { stack([x, y]) }",
        &[],
        &[
            r#"{"x":[[1,2],[4,5]],"y":[[0,1],[1,0]]}"#,
            r#"{"x":[],"y":[]}"#,
        ],
    );
}

#[test]
fn concatenations_of_tensors_with_several_instance_dims() {
    check(
        "fn main(a: f32[n, m], b: f32[k, m], c: i32[n, 2, m], d: i32[k, 2, m])
            -> (f32[n + k, m], i32[n + k, 2, m], i32[2*k, 2, m], f32[n + k + 1, m]) {
          let ab = concat(a, b, axis = 0);
          (ab, concat(c, d, axis = 0), concat(d, d, axis = 0), concat(ab * 2, ones([1, m]), axis = 0))
        }",
        &[],
        &[
            r#"{"a":[[1,2],[3,4]],"b":[[5,6]],"c":[[[1,2],[3,4]],[[5,6],[7,8]]],"d":[[[9,10],[11,12]]]}"#,
            r#"{"a":[[1]],"b":[],"c":[[[1],[2]]],"d":[]}"#,
            r#"{"a":[],"b":[[1,2,3]],"c":[],"d":[[[1,2,3],[4,5,6]]]}"#,
        ],
    );
}

#[test]
fn a_quotient_of_lengths_is_whole() {
    check(
        "fn half(x: f32[n, 2]) -> f32[n/2, 2] { zeros([n/2, 2]) + reshape(x, [n/2, 4])[.., 1..3] }
        fn main(x: f32[n, 2], y: f32[m]) -> (f32[n], f32[n/2, 2], f32[m/3], f32[n/2, 4]) {
          let z = zeros([n/2]);
          (concat(z, z + 1), half(x), ones([m/3]), reshape(x, [n/2, 4]))
        }",
        &[],
        &[
            r#"{"x":[[1,2],[3,4]],"y":[1,2,3]}"#,
            r#"{"x":[[1,2],[3,4],[5,6]],"y":[1,2,3]}"#,
            r#"{"x":[],"y":[]}"#,
            r#"{"x":[[1,2],[3,4],[5,6],[7,8]],"y":[1]}"#,
            r#"{"x":[[1,2],[3,4],[5,6],[7,8]],"y":[1,2,3,4,5,6]}"#,
        ],
    );
    check(
        "fn main(x: f32[n], y: f32[m]) -> f32[n*m/6] { fill([n*m/6], sum(x) + sum(y)) }",
        &[],
        &[
            r#"{"x":[1,2],"y":[1,2,3]}"#,
            r#"{"x":[1,2],"y":[1,2]}"#,
            r#"{"x":[],"y":[1,2]}"#,
        ],
    );
    check(
        "fn main(x: f32[n], y: f32[m]) -> f32[n/m] { zeros([n/m]) }",
        &[],
        &[
            r#"{"x":[1,2,3,4],"y":[1,2]}"#,
            r#"{"x":[1,2,3],"y":[1,2]}"#,
            r#"{"x":[1,2],"y":[]}"#,
        ],
    );
}

/// A part of a block that is cut reads a matrix through a slice of its own.
#[test]
fn many_layers_read_one_slice_of_a_matrix() {
    let layers = "let h = tanh(h @ m[.., 0..4] + b[1..5]);\n".repeat(140);
    check(
        &format!(
            "param b: f32[6]
            fn main(x: f32[n, 4], m: f32[4, 6]) -> (f32[n, 4], f32[n, 2]) {{
              let h = x;
              {layers}
              (h, h @ m[.., 4..6])
            }}"
        ),
        &[],
        &[
            r#"{"x":[[1,2,3,4],[0.5,0.5,-1,0]],"m":[[1,0.5,-1,0.25,1,2],[0,0.5,1,1,3,4],[-1,1,0.5,0,5,6],[0.25,1,0,1,7,8]]}"#,
            r#"{"x":[[1,2,3,4]],"m":[[1,0,0,0,1,0],[0,1,0,0,0,1],[0,0,1,0,2,0],[0,0,0,1,0,2]]}"#,
            r#"{"x":[],"m":[[1,0,0,0,1,0],[0,1,0,0,0,1],[0,0,1,0,2,0],[0,0,0,1,0,2]]}"#,
        ],
    );
}

/// A value of known shape and one of any meet where both have the length, and are one of known shape again.
#[test]
fn a_widened_value_meets_another() {
    check(
        "fn both(x: f32[a], y: f32[a]) -> f32[a] { x * y + 1.0 }
        fn main(k: f32[3], z: f32[n]) -> (f32[n], f32[3]) {
          let y: f32[n] = k;
          let back: f32[3] = tanh(z) + y;
          (both(tanh(y), z), back * k)
        }",
        &[],
        &[
            r#"{"k":[1,-2,0.5],"z":[0.25,3,-1]}"#,
            r#"{"k":[1,-2,0.5],"z":[0.25,3]}"#,
            r#"{"k":[1,2,3],"z":[]}"#,
            r#"{"k":[0,2,-3],"z":[4,5,6]}"#,
        ],
    );
}

/// That the result of arithmetic is taken as one of any length widens none of its operands, which would
/// then fit no other.
#[test]
fn operands_of_a_widened_result_keep_their_shapes() {
    check(
        "fn main(x: f32[3], c: bool) -> f32[3] {
          let a: f32[_] = (if c { x } else { x * 2.0 }) + x;
          let b: f32[_] = select(x > 0.0, match c { true => { x } false => { x * 0.5 } }, x + 0.5);
          let left: f32[3] = a;
          let right: f32[3] = b;
          left * right
        }",
        &[],
        &[
            r#"{"x":[1,-2,0.5],"c":true}"#,
            r#"{"x":[1,-2,0.5],"c":false}"#,
        ],
    );
}

#[test]
fn lengths_that_only_elements_have() {
    check(
        "dim D
        param w: f32[D]
        fn main(ws: [i32], k: i32, m: i32) -> (f32[4, _, D], f32[_, _, D], f32[_, D]) {
          let table = stack(map(range(4), |i| stack(map(ws, |v| f32(v * i) * w))));
          let filled = stack(map(range(m), |i| fill([k + 1, D], f32(i)) * w));
          let vs = push(reverse(ws), k);
          (table, filled, sum(map(range(m), |i| stack(map(vs, |v| f32(v + i) * w)))))
        }",
        &[("D", 2)],
        &[
            r#"{"ws":[3,-1],"k":2,"m":3}"#,
            r#"{"ws":[],"k":0,"m":2}"#,
            r#"{"ws":[7],"k":1,"m":0}"#,
            r#"{"ws":[7],"k":-1,"m":1}"#,
            r#"{"ws":[7],"k":-2,"m":0}"#,
            r#"{"ws":[7],"k":-2,"m":1}"#,
        ],
    );
}

/// Where something in scope tells a length, it is told where there are no elements either.
#[test]
fn a_sum_of_nothing_is_as_long_as_what_is_in_scope() {
    check(
        "fn main(x: f32[n], ws: [i32], k: i32) -> (f32[n], f32[_], f32[_, n]) {
          (sum(map(range(k), |i| x * f32(i))) + x, sum(map(range(k), |i| stack(map(ws, |v| f32(v))))),
           stack(map(range(k), |i| x + f32(i))))
        }",
        &[],
        &[
            r#"{"x":[1,2],"ws":[4,5,6],"k":2}"#,
            r#"{"x":[1,2],"ws":[4,5,6],"k":0}"#,
            r#"{"x":[],"ws":[],"k":0}"#,
        ],
    );
}
