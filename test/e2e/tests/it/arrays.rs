//! Built-ins on arrays, with bounds and conditions of the host and of tensors, against the oracle.

use crate::language::check;

#[test]
fn elements_are_replaced_and_arrays_cut_and_joined() {
    check(
        "fn main(xs: [i32], i: i32, n: i32) -> ([i32], [i32], [i32], [i32], [i32]) {
          (set(xs, i, 7), xs[i..], xs[..n], xs[i..n], concat(xs, [n], xs, []))
        }",
        &[],
        &[
            r#"{"xs":[1,2,3,4],"i":1,"n":3}"#,
            r#"{"xs":[1,2,3,4],"i":3,"n":4}"#,
            r#"{"xs":[1],"i":0,"n":0}"#,
            r#"{"xs":[],"i":0,"n":0}"#,
            r#"{"xs":[1,2,3,4],"i":4,"n":4}"#,
            r#"{"xs":[1,2,3,4],"i":-1,"n":4}"#,
            r#"{"xs":[1,2,3,4],"i":2,"n":1}"#,
            r#"{"xs":[1,2,3,4],"i":2,"n":5}"#,
        ],
    );
}

#[test]
fn numbers_between_two() {
    check(
        "fn main(a: i32, b: i32) -> ([i32], i32) { (range(a, b), len(range(b, a))) }",
        &[],
        &[
            r#"{"a":-2,"b":3}"#,
            r#"{"a":3,"b":3}"#,
            r#"{"a":5,"b":3}"#,
            r#"{"a":2147483646,"b":2147483647}"#,
            r#"{"a":-2147483648,"b":-2147483647}"#,
        ],
    );
}

#[test]
fn elements_for_which_something_holds() {
    check(
        "type T = A(i32) | B
        fn is_a(t: T) -> bool { match t { A(k) if k > 0 => true, _ => false } }
        fn main(xs: [i32], ts: [T], ps: [(i32, bool)]) -> ([i32], [T], [(i32, bool)], (bool, bool), (bool, bool), bool) {
          (filter(xs, |x| x % 2 == 0), filter(ts, is_a), filter(ps, |(k, p)| p || k == 0),
           (any(xs, |x| x > 3), all(xs, |x| x > 0)), (any(ts, is_a), all(ts, is_a)),
           any(map(ps, |(_, p)| p)))
        }",
        &[],
        &[
            r#"{"xs":[1,2,3,4],"ts":[{"A":[1]},"B",{"A":[0]}],"ps":[[0,false],[1,true],[2,false]]}"#,
            r#"{"xs":[-2],"ts":[{"A":[1]}],"ps":[[3,false]]}"#,
            r#"{"xs":[],"ts":[],"ps":[]}"#,
        ],
    );
}

/// Elements that tensors computed are asked all together; a chosen place is waited for once.
#[test]
fn tensors_as_elements_and_as_bounds() {
    check(
        "dim H
        param w: f32[H, H]
        fn positive(x: f32[H]) -> bool { sum(x @ w) > 0 }
        fn main(rows: [f32[H]], ys: [f32[_, H]], p: f32[5]) -> ([f32[H]], [f32[H]], bool, bool, [f32[H]], [i32], f32[H], (bool, bool)) {
          let k = argmax(p);
          (filter(rows, positive), set(rows, k, rows[0] * 3), any(rows, positive),
           all(rows, |r| r[0] > 0), rows[..k + 1], range(-k, 2),
           sum(map(set(concat(ys, ys[0..1]), 0, zeros([1, H])), |y| sum(y, axis = 0))),
           (any(stack(rows) > 2), all(stack(rows) > -2)))
        }",
        &[("H", 3)],
        &[
            r#"{"rows":[[1,2,3],[-1,-2,-3],[0.5,0,0],[4,4,4],[1,1,1]],"ys":[[[1,2,3]],[[1,2,3],[0,0,1]]],"p":[0,1,0,0,0]}"#,
            r#"{"rows":[[1,2,3],[1,-1,-1]],"ys":[[[1,2,3]]],"p":[3,1,2,0,0]}"#,
            r#"{"rows":[[1,2,3],[1,-1,-1]],"ys":[],"p":[3,1,2,0,0]}"#,
            r#"{"rows":[[1,2,3],[1,-1,-1]],"ys":[[]],"p":[3,1,9,0,0]}"#,
        ],
    );
}

#[test]
fn bools_of_tensors_along_an_axis() {
    check(
        "fn main(x: f32[n, 3]) -> (bool, bool, bool[3], bool[n], bool) {
          (any(x > 0), all(x > 0), any(x > 0, axis = 0), all(x > 0, axis = 1), !all(x < 0))
        }",
        &[],
        &[
            r#"{"x":[[1,2,3],[-1,-2,-3]]}"#,
            r#"{"x":[[1,2,3]]}"#,
            r#"{"x":[]}"#,
        ],
    );
}
