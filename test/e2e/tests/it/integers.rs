//! Integer arithmetic, elementwise and of the host: what wraps, what rounds, and what is the instance's
//! error.

use crate::language::check;

#[test]
fn integer_tensors_divide_by_tensors_and_by_host_values() {
    check(
        "fn main(x: i32[n], y: i32[n], k: i32) -> (i32[n], i32[n], i32[n], i32[n], i32) {
          (x % k, x / k, x / y, x % y, max(x) % argmax(y))
        }",
        &[],
        &[
            r#"{"x":[7,-7,9],"y":[2,3,-5],"k":4}"#,
            r#"{"x":[7,-7],"y":[1,-1],"k":-3}"#,
            r#"{"x":[-2147483648,5],"y":[-1,-1],"k":-1}"#,
            r#"{"x":[1,2,3],"y":[1,0,4],"k":4}"#,
            r#"{"x":[1,2,3],"y":[1,3,4],"k":0}"#,
            r#"{"x":[9,8],"y":[3,3],"k":5}"#,
            r#"{"x":[17,3,40,1],"y":[1,2,9,8],"k":5}"#,
        ],
    );
}

#[test]
fn divisors_of_known_shape_broadcast() {
    check(
        "dim D
        param p: i32[D]
        fn main(x: i32[3, D], k: i32) -> (i32[3, D], i32[3, D], i32) {
          let r = sum(x, axis = 1);
          (x / (p * p + 1), x % (reshape(r * r, [3, 1]) + 1), (sum(x) + k) / (k - 1))
        }",
        &[("D", 2)],
        &[
            r#"{"x":[[1,2],[-3,4],[50,-60]],"k":4}"#,
            r#"{"x":[[1,2],[-3,4],[50,-60]],"k":1}"#,
        ],
    );
}

#[test]
fn constant_divisors_at_the_bounds() {
    check(
        "fn main(x: i32[n], y: i32[2], k: i32) -> (i32[n], i32[n], i32[2], i32[2], i32, i32, i32, i32[n]) {
          (x / -1, x % -1, y / -1, y % -1, k / -1, k % -1, sum(y) / -1, x / -2147483648)
        }",
        &[],
        &[
            r#"{"x":[-2147483648,5,2147483647],"y":[-2147483648,-7],"k":-2147483648}"#,
            r#"{"x":[],"y":[0,1],"k":7}"#,
        ],
    );
}

#[test]
fn a_division_by_the_constant_0_is_an_error_of_the_instance() {
    for divided in [
        "x / 0",
        "x % 0",
        "x / (k - k)",
        "x / zero",
        "fill([n], k % 0)",
    ] {
        check(
            &format!(
                "let zero = 0
                fn main(x: i32[n], y: i32[2], k: i32) -> (i32[n], i32) {{
                  if k > 0 {{ ({divided}, max(y / k)) }} else {{ (x, k / 3) }}
                }}"
            ),
            &[],
            &[
                r#"{"x":[5],"y":[1,2],"k":1}"#,
                r#"{"x":[5],"y":[1,2],"k":-5}"#,
            ],
        );
    }
}

#[test]
fn powers_of_integers_wrap_and_negative_exponents_round_to_zero() {
    check(
        "fn main(x: i32[n], y: i32[n], k: i32) -> (i32[n], i32[n], i32[n], i32, i32, i32) {
          (pow(x, y), pow(x, 3), pow(x, k), pow(k, k), pow(k, 5), pow(2, k))
        }",
        &[],
        &[
            r#"{"x":[2,-3,7,0,1,-1,-1],"y":[10,3,31,0,-4,-3,-4],"k":3}"#,
            r#"{"x":[46341,-2147483648,2147483647],"y":[2,2,3],"k":-2}"#,
            r#"{"x":[0,5],"y":[-1,-1],"k":0}"#,
            r#"{"x":[1,-1,2147483647],"y":[-2147483648,-2147483648,-2147483648],"k":31}"#,
            r#"{"x":[-2147483647,-5],"y":[-2,2147483647],"k":1}"#,
        ],
    );
}
