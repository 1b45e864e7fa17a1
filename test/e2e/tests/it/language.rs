//! Small programs, one a feature of the language that the models of the zoo leave out or use in
//! one way only. What the oracle makes of them is what they mean.

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};

/// Runs a program over lines and compares with the oracle, batched, one by one, on threads, and by
/// the code of GPUs.
#[track_caller]
pub fn check(text: &str, dims: &[(&str, u64)], lines: &[&str]) {
    let model = Model::from_text(text, dims, &mut Rng::new(51));
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let expected = model.oracle_lines(&input);
    let of_kind = |kind: &str| expected.iter().filter(|line| line.contains(kind)).count();
    assert!(
        of_kind("\"output\"") > 0,
        "no instance has an output: {expected:?}"
    );
    assert_eq!(
        of_kind("\"internal\""),
        0,
        "the program contradicts itself: {expected:?}"
    );
    let mut lines: Option<Vec<String>> = None;
    for arguments in [
        &[][..],
        &["--batch", "1"],
        &["--no-batch"],
        &["--threads", "2"],
        &["--device", "gpu-sim"],
    ] {
        let outcome = model.batch_run().args(arguments).run(&input);
        assert!(outcome.code < 2, "{}\nin\n{text}", outcome.describe());
        compare_records(&expected, &outcome.lines(), Closeness::EachNumber(1e-5))
            .unwrap_or_else(|message| panic!("{message}\nfrom {}\nin\n{text}", outcome.describe()));
        // How instances share batches and threads changes no bit.
        if matches!(arguments, [] | ["--batch" | "--threads", _]) {
            let lines = lines.get_or_insert_with(|| outcome.lines());
            assert_eq!(*lines, outcome.lines(), "with {arguments:?} in\n{text}");
        }
    }
}

#[test]
fn arithmetic_of_the_host() {
    check(
        "fn main(a: i32, b: i32, x: f32, p: bool) -> (i32, i32, i32, f32, bool, bool) {
          (a * b - 7, a % 5, a / 3, f32(a) * x + 0.5, p && a < b, !p || a == b)
        }",
        &[],
        &[
            r#"{"a":12,"b":-3,"x":0.25,"p":true}"#,
            r#"{"a":-12,"b":40,"x":-1.5,"p":true}"#,
            r#"{"a":2147483647,"b":2147483647,"x":1e20,"p":false}"#,
            r#"{"a":-2147483648,"b":1,"x":0,"p":false}"#,
        ],
    );
}

#[test]
fn division_by_zero_is_an_error_of_its_instance() {
    check(
        "fn main(a: i32, b: i32) -> (i32, i32) { (a / b, a % b) }",
        &[],
        &[
            r#"{"a":7,"b":2}"#,
            r#"{"a":7,"b":0}"#,
            r#"{"a":-7,"b":2}"#,
            r#"{"a":0,"b":0}"#,
            r#"{"a":-2147483648,"b":-1}"#,
        ],
    );
}

#[test]
fn loops_over_host_values() {
    check(
        "fn main(n: i32) -> (i32, i32) {
          let (_, a, b) = while i < n with (i = 0, a = 0, b = 1) { (i + 1, b, a + b) };
          let steps = while x != 1 with (x = n + 1) {
            if x % 2 == 0 { x / 2 } else { 3 * x + 1 }
          };
          (a, steps + b)
        }",
        &[],
        &[
            r#"{"n":0}"#,
            r#"{"n":1}"#,
            r#"{"n":10}"#,
            r#"{"n":26}"#,
            r#"{"n":40}"#,
        ],
    );
}

#[test]
fn loops_that_carry_tensors() {
    check(
        "dim H
        param w: f32[H, H]
        param h0: f32[H]
        fn main(n: i32, words: [i32]) -> (f32[H], f32[H]) {
          let (_, h) = while i < n with (i = 0, h = h0) { (i + 1, tanh(h @ w)) };
          let g = for word in words with (g = h) { sin(g * f32(word)) };
          (h, g)
        }",
        &[("H", 13)],
        &[
            r#"{"n":0,"words":[]}"#,
            r#"{"n":3,"words":[1,2]}"#,
            r#"{"n":9,"words":[0]}"#,
            r#"{"n":2,"words":[3,1,4,1,5]}"#,
        ],
    );
}

#[test]
fn mutual_recursion_and_several_types() {
    check(
        "dim H
        param a0: f32[H]
        param b0: f32[H]
        param w: f32[H, H]
        type Even = Done | Odd(Next)
        type Next = Step(i32, Even)
        fn even(e: Even) -> f32[H] { match e { Done => a0, Odd(n) => tanh(next(n) @ w) } }
        fn next(n: Next) -> f32[H] { match n { Step(k, e) => b0 * f32(k) + even(e) } }
        fn main(e: Even) -> f32[H] { even(e) }",
        &[("H", 5)],
        &[
            r#"{"e":"Done"}"#,
            r#"{"e":{"Odd":[{"Step":[2,"Done"]}]}}"#,
            r#"{"e":{"Odd":[{"Step":[2,{"Odd":[{"Step":[-1,"Done"]}]}]}]}}"#,
        ],
    );
}

#[test]
fn generic_types_and_nested_patterns() {
    check(
        "type Option<T> = None | Some(T)
        type List<T> = Nil | Cons(T, List<T>)
        fn first_two(xs: List<i32>) -> Option<(i32, i32)> {
          match xs { Cons(a, Cons(b, _)) => Some((a, b)), _ => None }
        }
        fn kind(xs: List<i32>) -> i32 {
          match xs { Cons(0, Nil) => 1, Cons(_, Cons(5, rest)) => 2 + kind(rest), _ => 0 }
        }
        fn main(xs: List<i32>) -> (Option<(i32, i32)>, i32) { (first_two(xs), kind(xs)) }",
        &[],
        &[
            r#"{"xs":"Nil"}"#,
            r#"{"xs":{"Cons":[0,"Nil"]}}"#,
            r#"{"xs":{"Cons":[3,{"Cons":[5,{"Cons":[0,"Nil"]}]}]}}"#,
            r#"{"xs":{"Cons":[3,{"Cons":[4,"Nil"]}]}}"#,
        ],
    );
}

#[test]
fn results_of_every_type() {
    check(
        "dim H
        param b: f32[H]
        type Tree = Leaf(i32) | Node(Tree, f32[H], Tree)
        fn mirror(t: Tree) -> Tree {
          match t { Leaf(w) => Leaf(w + 1), Node(l, x, r) => Node(mirror(r), tanh(x + b), mirror(l)) }
        }
        fn main(t: Tree, xs: [f32[H]]) -> (Tree, [(i32, f32[H])], [bool]) {
          (mirror(t), map(range(len(xs)), xs, |i, x| (i * i, x * b)), map(xs, |x| len(xs) > 1))
        }",
        &[("H", 2)],
        &[
            r#"{"t":{"Leaf":[4]},"xs":[]}"#,
            r#"{"t":{"Node":[{"Leaf":[1]},[0.5,-2],{"Leaf":[2]}]},"xs":[[1,2]]}"#,
            r#"{"t":{"Node":[{"Leaf":[1]},[1,2],{"Node":[{"Leaf":[2]},[3,4],{"Leaf":[3]}]}]},"xs":[[1,2],[3,4],[5,6]]}"#,
        ],
    );
}

#[test]
fn arrays_of_the_host() {
    check(
        "fn main(xs: [i32], i: i32) -> ([i32], i32, i32, i32, [i32]) {
          let doubled = map(xs, |x| 2 * x);
          let total = fold(doubled, 100, |acc, x| acc - x);
          (push(reverse(doubled), i), total, sum(xs), len(xs), map(range(i), |k| k * len(xs)))
        }",
        &[],
        &[
            r#"{"xs":[],"i":0}"#,
            r#"{"xs":[1,2,3],"i":2}"#,
            r#"{"xs":[-5],"i":-4}"#,
        ],
    );
}

#[test]
fn an_index_out_of_range_is_an_error_of_its_instance() {
    check(
        "dim H
        param table: f32[3, H]
        fn main(xs: [i32], i: i32) -> (i32, f32[H]) { (xs[i], table[i]) }",
        &[("H", 3)],
        &[
            r#"{"xs":[7,8],"i":1}"#,
            r#"{"xs":[7,8],"i":2}"#,
            r#"{"xs":[7,8],"i":-1}"#,
            r#"{"xs":[],"i":0}"#,
            r#"{"xs":[7,8,9,10],"i":3}"#,
            r#"{"xs":[7,8,9,10],"i":2}"#,
        ],
    );
}

#[test]
fn unequal_lengths_are_an_error_of_their_instance() {
    check(
        "fn main(a: [i32], b: [i32]) -> [i32] { map(a, b, |x, y| x * y) }",
        &[],
        &[
            r#"{"a":[1,2],"b":[3,4]}"#,
            r#"{"a":[1,2],"b":[3]}"#,
            r#"{"a":[],"b":[]}"#,
            r#"{"a":[],"b":[3]}"#,
        ],
    );
}

#[test]
fn closures_see_the_variables_around_them() {
    check(
        "dim H
        param w: f32[H, H]
        fn main(x: f32[H], ks: [i32]) -> (f32[H], [f32[H]]) {
          let base = x @ w;
          let parts = map(ks, |k| {
            let scaled = base * f32(k);
            sum(map(range(k), |j| tanh(scaled + f32(j)))) - x
          });
          (sum(parts), parts)
        }",
        &[("H", 7)],
        &[
            r#"{"x":[1,2,3,4,5,6,7],"ks":[]}"#,
            r#"{"x":[1,2,3,4,5,6,7],"ks":[0]}"#,
            r#"{"x":[0.5,-2,3,-4,0.25,0,1],"ks":[2,1,3]}"#,
        ],
    );
}

#[test]
fn tensors_that_no_instance_touches() {
    check(
        "dim H
        param a: f32[H]
        param w: f32[H, H]
        fn main(i: i32) -> (f32[H], f32[H, H], f32) { (tanh(a @ w), w, a @ a) }",
        &[("H", 3)],
        &[r#"{"i":1}"#, r#"{"i":2}"#],
    );
}

#[test]
fn an_argument_that_is_returned_as_it_came() {
    check(
        "dim H
        param a: f32[H]
        fn main(x: f32[H], y: f32[2, H], k: i32) -> (f32[H], f32[2, H], i32, f32[H]) { (x, y, k, a) }",
        &[("H", 3)],
        &[
            r#"{"x":[1,2,3],"y":[[1,2,3],[4,5,6]],"k":9}"#,
            r#"{"x":[0.1,-0.0,1e-30],"y":[[0,0,0],[1e30,1,1]],"k":-9}"#,
        ],
    );
}

#[test]
fn matrices_of_an_instance() {
    check(
        "dim D, H
        param w: f32[D, H]
        param m: f32[2, 3]
        fn main(x: f32[3, D], y: f32[H, 2]) -> (f32[3, 2], f32[2, D], f32[3], f32[D, 3]) {
          (x @ w @ y, m @ x, sum(x @ w, axis = 1), transpose(x))
        }",
        &[("D", 5), ("H", 17)],
        &[
            r#"{"x":[[1,2,3,4,5],[6,7,8,9,10],[0,0,1,0,0]],"y":[[1,2],[3,4],[5,6],[7,8],[9,10],[1,2],[3,4],[5,6],[7,8],[9,10],[1,2],[3,4],[5,6],[7,8],[9,10],[0,1],[1,0]]}"#,
            r#"{"x":[[0,0,0,0,0],[1,1,1,1,1],[-1,0.5,-1,0.5,-1]],"y":[[1,2],[3,4],[5,6],[7,8],[9,10],[1,2],[3,4],[5,6],[7,8],[9,10],[1,2],[3,4],[5,6],[7,8],[9,10],[0,1],[1,0]]}"#,
        ],
    );
}

#[test]
fn integer_and_bool_tensors() {
    check(
        "dim H
        param w: f32[H, H]
        fn main(x: f32[H], k: i32[H]) -> (i32[H], i32, f32[H]) {
          (select(x > 0.0, k * 2 + 1, -k), argmax(x), f32(k) @ w)
        }",
        &[("H", 4)],
        &[
            r#"{"x":[1,-2,3,-4],"k":[1,2,3,4]}"#,
            r#"{"x":[-1,-2,-3,-4],"k":[-1,0,2147483647,4]}"#,
        ],
    );
}

#[test]
fn an_instance_without_tensors_among_those_with() {
    check(
        "dim H
        param w: f32[H, H]
        type Maybe = No | Yes(f32[H])
        fn main(m: Maybe) -> Maybe { match m { No => No, Yes(x) => Yes(tanh(x @ w)) } }",
        &[("H", 3)],
        &[
            r#"{"m":"No"}"#,
            r#"{"m":{"Yes":[[1,2,3]]}}"#,
            r#"{"m":"No"}"#,
            r#"{"m":{"Yes":[[0,0,0]]}}"#,
        ],
    );
}

#[test]
fn what_is_made_of_parameters_alone() {
    check(
        "dim V, D, H
         param emb: f32[V, D]  param w: f32[H, D]  param a: f32[D, H]
         param p: f32[H]  param q: f32[H]  param wo: f32[H, 3]
         type Tree = Leaf(i32) | Node(Tree, Tree)
         fn cell(t: Tree) -> f32[H] {
           match t {
             Leaf(i) => tanh(emb[i] @ transpose(w) + softmax(p)),
             Node(l, r) => {
               let h = cell(l) * cell(r);
               tanh((h @ w) @ (a + transpose(w)) + (p + q)) * softmax(p)
             }
           }
         }
         fn main(t: Tree, k: i32) -> (f32[2], f32[H], f32[D]) {
           let table = tanh(emb) * 2;
           (cell(t) @ wo[.., 0..2], p @ (w @ a), table[k])
         }",
        &[("V", 7), ("D", 5), ("H", 9)],
        &[
            r#"{"t":{"Leaf":[3]},"k":0}"#,
            r#"{"t":{"Node":[{"Leaf":[1]},{"Node":[{"Leaf":[6]},{"Leaf":[0]}]}]},"k":6}"#,
            r#"{"t":{"Node":[{"Leaf":[2]},{"Leaf":[2]}]},"k":7}"#,
        ],
    );
}

#[test]
fn layers_with_weights_of_their_own() {
    check(
        "dim L, D
        param w: f32[L, D, D]   param b: f32[L, D]   param v: f32[L, D, 2]
        fn layer(x: f32[D], l: i32) -> f32[D] { tanh(x @ w[l] + b[l]) }
        fn main(x: f32[D]) -> ([f32[2]], f32[D], f32[D]) {
          let deep = for l in range(L) with (x = x) { layer(x, l) + b[l] };
          (map(range(L), |l| deep @ v[l]), b[1], deep * b[0])
        }",
        &[("L", 3), ("D", 5)],
        &[
            r#"{"x":[0.25,-1,2,0,3]}"#,
            r#"{"x":[0,0,0,0,0]}"#,
            r#"{"x":[1,2,3]}"#,
        ],
    );
}

#[test]
fn results_with_two_instance_dims() {
    check(
        "dim D
        param w: f32[D, D]
        fn scores(x: f32[n, D], y: f32[k, D]) -> f32[n, k] { x @ w @ transpose(y) }
        fn main(y: f32[k, D], x: f32[n, D]) -> (f32[n, k], f32[k, n], f32[k], f32[k, D]) {
          let s = scores(x, y);
          (exp(s), transpose(s), sum(s, axis = 0), transpose(s) @ x)
        }",
        &[("D", 2)],
        &[
            r#"{"y":[[1,2],[3,4],[5,6]],"x":[[0.5,-0.25]]}"#,
            r#"{"y":[[1,2]],"x":[[0.5,-0.25],[0.25,1]]}"#,
            r#"{"y":[],"x":[[0.5,-0.25],[0.25,1]]}"#,
            r#"{"y":[[1,2],[0,1]],"x":[]}"#,
        ],
    );
}

/// The reference draws them by code of its own: a function of the id, the counter and the position.
#[test]
fn random_numbers_of_an_instance() {
    check(
        "dim D
        param w: f32[D, D]
        fn walk(x: f32[D], k: i32) -> (f32[D], i32) {
          if k < 8 && random(k) < 0.7 { walk(tanh(x @ w) + random(k, [D]), k + 1) } else { (x, k) }
        }
        fn main(x: f32[D]) -> (f32[D], i32, f32[3, 2]) {
          let (h, k) = walk(x, 0);
          (h, k, random(-1, [3, 2]))
        }",
        &[("D", 3)],
        &[
            r#"{"x":[1,2,3]}"#,
            r#"{"id":"other","x":[1,2,3]}"#,
            r#"{"id":"\u00fcber \"a\"","x":[1,2,3]}"#,
            r#"{"id":17,"x":[1,2,3]}"#,
        ],
    );
}

#[test]
fn what_an_instance_has_once_of_rows_of_differing_number() {
    check(
        "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D]) -> (f32[D], f32, f32[D, D]) {
          let y = x @ w;
          (sum(y, axis = 0), sum(y), transpose(y) @ x)
        }",
        &[("D", 3)],
        &[
            r#"{"x":[[1,2,3],[0.5,0.25,-1]]}"#,
            r#"{"x":[]}"#,
            r#"{"x":[[3,2,1]]}"#,
        ],
    );
}

/// What docs/data.md says of numbers.
#[test]
fn signs_casts_and_numbers_that_are_not_finite() {
    check(
        "type T = Leaf(i32) | Node(left: T, right: T) | Empty
        fn main(a: i32, b: i32, x: f32, y: f32, p: bool, t: T, m: f32[n, 2], v: f32[2])
            -> ((i32, i32, i32, i32), (f32, f32, f32), (f32, i32, i32), T, f32[n, 2], f32[2]) {
          ((a / b, a % b, a * 3, -a), (x / y, -x, f32(p)), (f32(a), i32(p), i32(v[1])), t, m, v / v)
        }",
        &[],
        &[
            r#"{"id":"a","a":7,"b":-2,"x":1.5,"y":0,"p":true,"t":{"Node":["Empty",{"Leaf":[-3]}]},"m":[],"v":[0,1.75]}"#,
            r#"{"id":7,"a":-7,"b":2,"x":-1.5,"y":0,"p":false,"t":"Empty","m":[[1,"NaN"],["-Infinity",1e-50]],"v":["Infinity",-2.5]}"#,
            r#"{"a":-2147483648,"b":-1,"x":3e9,"y":2,"p":false,"t":"Empty","m":[[1,2]],"v":[3,3e9]}"#,
            r#"{"a":2147483647,"b":3,"x":"NaN","y":2,"p":false,"t":"Empty","m":[[1,2]],"v":[3,-3e9]}"#,
            r#"{"a":16777217,"b":3,"x":0,"y":0,"p":false,"t":"Empty","m":[[1,2]],"v":[3,"Infinity"]}"#,
            r#"{"a":1.0,"b":3,"x":1,"y":2,"p":false,"t":"Empty","m":[[1,2]],"v":[3,2]}"#,
            r#"{"a":1,"b":0,"x":1,"y":2,"p":false,"t":"Empty","m":[[1,2]],"v":[3,2]}"#,
            r#"{"a":1,"b":1,"x":1e39,"y":2,"p":false,"t":"Empty","m":[[1,2]],"v":[3,2]}"#,
            r#"{"a":1,"b":1,"x":1,"y":2,"p":0,"t":"Empty","m":[[1,2]],"v":[3,2]}"#,
            r#"{"a":1,"b":1,"x":1,"y":2,"p":true,"t":{"Empty":[]},"m":[[1,2]],"v":[3,2]}"#,
            r#"{"a":-0,"b":1,"x":1,"y":2,"p":true,"t":"Empty","m":[[1,2]],"v":[3,2]}"#,
        ],
    );
}
