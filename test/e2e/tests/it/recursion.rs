//! Recursions that the compiler writes out: what is computed stays what the oracle says, whatever the structure.

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
