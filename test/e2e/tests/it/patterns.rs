//! Guards, alternatives, negative literals, names of fields and names of types, against the oracle.

use crate::language::check;

#[test]
fn guards_alternatives_and_negative_literals() {
    check(
        "fn kind(a: i32, b: i32) -> i32 {
          match (a, b) {
            (0, x) | (x, 0) => x,
            (-1 | -2147483648, _) => -7,
            (x, y) if x == y => 2 * x,
            (x, y) if x > y && y > 0 => x / y,
            (_, 1 | 2 | 3) => 4,
            _ => 5,
          }
        }
        fn main(a: i32, b: i32) -> i32 { kind(a, b) }",
        &[],
        &[
            r#"{"a":0,"b":9}"#,
            r#"{"a":9,"b":0}"#,
            r#"{"a":0,"b":0}"#,
            r#"{"a":-1,"b":3}"#,
            r#"{"a":-2147483648,"b":1}"#,
            r#"{"a":5,"b":5}"#,
            r#"{"a":17,"b":5}"#,
            r#"{"a":-17,"b":2}"#,
            r#"{"a":-17,"b":-18}"#,
        ],
    );
}

/// A guard may ask a tensor; what the arm computes is shared by all ways that lead to it.
#[test]
fn guards_that_tensors_decide() {
    check(
        "dim V, H
        param emb: f32[V, H]
        param w: f32[H, H]
        type Tree = Leaf(i32) | Pair(Tree, Tree) | Again(f32[H], Tree) | Other(Tree, f32[H])
        fn state(t: Tree) -> f32[H] {
          match t {
            Leaf(k) if sum(emb[k] @ w) > 0 => emb[k],
            Again(x, rest) | Other(rest, x) if sum(x) > sum(state(rest)) => tanh(x @ w),
            Pair(Leaf(0 | 1), r) | Pair(r, Leaf(-1)) => relu(state(r) @ w),
            Pair(l, r) => tanh(state(l) + state(r) @ w),
            Leaf(k) => emb[k] * 0.5,
            Again(_, t) | Other(t, _) => state(t),
          }
        }
        fn main(t: Tree) -> f32[H] { state(t) }",
        &[("V", 5), ("H", 3)],
        &[
            r#"{"t":{"Leaf":[0]}}"#,
            r#"{"t":{"Leaf":[4]}}"#,
            r#"{"t":{"Pair":[{"Leaf":[1]},{"Leaf":[2]}]}}"#,
            r#"{"t":{"Pair":[{"Leaf":[3]},{"Leaf":[-1]}]}}"#,
            r#"{"t":{"Pair":[{"Leaf":[3]},{"Leaf":[2]}]}}"#,
            r#"{"t":{"Again":[[9,9,9],{"Leaf":[2]}]}}"#,
            r#"{"t":{"Other":[{"Again":[[-9,-9,-9],{"Leaf":[2]}]},[9,0.5,1]]}}"#,
        ],
    );
}

#[test]
fn alternatives_that_bind_tensors_of_any_length() {
    check(
        "dim H
        param b: f32[H]
        type Piece = Left(f32[_, H], i32) | Right(i32, f32[_, H]) | None
        fn rows(p: Piece) -> i32 {
          match p { Left(x, k) | Right(k, x) if k > 0 => len(x), None => 0, _ => -1 }
        }
        fn mean_of(p: Piece) -> f32[H] {
          match p { Left(x, _) | Right(_, x) => sum(x * b, axis = 0), None => zeros([H]) }
        }
        fn main(ps: [Piece]) -> ([i32], f32[H]) { (map(ps, rows), sum(map(ps, mean_of))) }",
        &[("H", 3)],
        &[
            r#"{"ps":[{"Left":[[[1,2,3],[4,5,6]],1]},{"Right":[2,[[7,8,9]]]},"None"]}"#,
            r#"{"ps":[{"Right":[-2,[]]},{"Left":[[[0.5,0.25,1]],0]}]}"#,
            r#"{"ps":[]}"#,
        ],
    );
}

#[test]
fn fields_have_names() {
    check(
        "dim H
        param w: f32[H, H]
        type State = State(hidden: f32[H], steps: i32)
        type Step<T> = Go(state: State, rest: T) | Stop(state: State)
        fn next(s: State, x: f32[H]) -> State {
          State(steps = s.steps + 1, hidden = tanh(s.hidden @ w + x))
        }
        fn walk(s: Step<[f32[H]]>) -> State {
          match s {
            Go(rest = xs, state = State(h, k)) if k < 3 =>
              for x in xs with (s = State(h, k)) { next(s, x) },
            Go(rest = xs) => State(steps = len(xs), hidden = zeros([H])),
            Stop(state = s) => s,
          }
        }
        fn main(s: State, xs: [f32[H]]) -> (State, i32, Step<i32>) {
          let go = Go(state = s, rest = xs);
          let stop: Step<[f32[H]]> = Stop(state = next(s, s.hidden));
          (walk(go), walk(stop).steps + go.state.steps, Go(walk(stop), s.steps))
        }",
        &[("H", 3)],
        &[
            r#"{"s":{"State":[[1,0,-1],0]},"xs":[]}"#,
            r#"{"s":{"State":[[1,0,-1],2]},"xs":[[0.5,0.25,1],[1,1,1]]}"#,
            r#"{"s":{"State":[[1,0,-1],3]},"xs":[[0.5,0.25,1]]}"#,
            r#"{"s":{"State":[[1,0],3]},"xs":[]}"#,
        ],
    );
}

#[test]
fn names_of_types() {
    check(
        "dim H
        param w: f32[H, H]
        type Row = f32[H]
        type Id = i32
        type Two<T> = (T, T)
        type Seq = [Row]
        type Words = Chain<Id>
        type Chain<T> = End | Link(T, Chain<T>)
        type Both = Two<Two<Id>>
        type Same = Tree
        type Tree = Leaf(Id) | Node(Two<Tree>)
        fn count(t: Same) -> Id { match t { Leaf(k) => k, Node((l, r)) => count(l) + count(r) } }
        fn total(xs: Words) -> i32 { match xs { End => 0, Link(k, rest) => k + total(rest) } }
        fn main(t: Tree, xs: Words, rows: Seq, b: Both) -> (Id, i32, Row, Two<i32>) {
          let ((p, q), (r, s)) = b;
          (count(t), total(xs), sum(map(rows, |x| x @ w)), (p + r, q + s))
        }",
        &[("H", 3)],
        &[
            r#"{"t":{"Leaf":[3]},"xs":"End","rows":[],"b":[[1,2],[3,4]]}"#,
            r#"{"t":{"Node":[[{"Leaf":[3]},{"Leaf":[4]}]]},"xs":{"Link":[2,"End"]},"rows":[[1,2,3]],"b":[[1,2],[3,4]]}"#,
        ],
    );
}
