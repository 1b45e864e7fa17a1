//! The parser: what is written becomes which tree.

use cohort_frontend::{Sources, dump_ast};

use crate::support;

fn dumped(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("test.coh", text);
    match dump_ast(&sources, file) {
        Ok(dump) => dump,
        Err(errors) => support::shown(&errors, &sources),
    }
}

#[test]
fn items_need_no_separators() {
    insta::assert_snapshot!(dumped("dim V, D param a: f32[V, 3*D] param b: i32[(V+D)*2/D] let k = 4
        type T<U> = | A | B(U, [T<U>], (i32, f32[_]))"), @r"
    dim V, D
    param a: f32[V, 3*D]
    param b: i32[(V + D)*2/D]
    let k = 4
    type T<U> = A | B(U, [T<U>], (i32, f32[_]))
    ");
}

#[test]
fn a_parameter_may_be_stored_by_another_name() {
    insta::assert_snapshot!(dumped("dim L, D param from: f32[L, D, D] from \"layer.{}.weight\".T
        param T: f32[D] from \"bias\" fn main(x: f32[D]) -> f32[D] { x + T }"), @r#"
    dim L, D
    param from: f32[L, D, D] from "layer.{}.weight".T
    param T: f32[D] from "bias"
    fn main(x: f32[D]) -> f32[D] {
      (x + T)
    }
    "#);
}

#[test]
fn operators_bind_as_usual() {
    insta::assert_snapshot!(
        dumped("fn main(a: f32) -> f32 { !a || -a + b @ c * d < e - f - g && h % 2 == 0 }"), @r"
    fn main(a: f32) -> f32 {
      ((!a) || ((((-a) + ((b @ c) * d)) < ((e - f) - g)) && ((h % 2) == 0)))
    }
    ");
}

#[test]
fn blocks_branches_and_loops_stand_where_an_expression_ends() {
    let text = "fn main(a: f32) -> f32 {
        let (x, _): (f32, i32) = { let y = a; (y, 1) };
        let z = (if x > 0.0 { x } else if a > 1 { a } else { 2.0 }) + 1;
        match f(|p, (q, _)| { p }, axis = -1) {
            A => x
            , B(-1, true) => if x { y } else { z }
            (c, d) => while c with (i = 0, j: [f32] = []) { (i, j) }
            _ => for w in xs with (h = 0) { h }
        }
    }";
    insta::assert_snapshot!(dumped(text), @r"
    fn main(a: f32) -> f32 {
      let (x, _): (f32, i32) = {
        let y = a;
        (y, 1)
      };
      let z = ((if (x > 0.0) {
        x
      } else {
        if (a > 1) {
          a
        } else {
          2.0
        }
      }) + 1);
      match f(|p, (q, _)| p, axis = (-1)) {
        A => x,
        B(-1, true) => if x {
          y
        } else {
          z
        },
        (c, d) => while c with (i = 0, j: [f32] = []) {
          (i, j)
        },
        _ => for w in xs with (h = 0) {
          h
        },
      }
    }
    ");
}

#[test]
fn indices_and_slices() {
    insta::assert_snapshot!(
        dumped("fn main(x: f32[n, H]) -> f32 { x[0][1, .., 2..H][a.., ..b] + dim(x, 0) }"), @r"
    fn main(x: f32[n, H]) -> f32 {
      (x[0][1, .., 2..H][a.., ..b] + dim(x, 0))
    }
    ");
}

#[test]
fn comments_and_numbers() {
    insta::assert_snapshot!(
        dumped("// one\nfn main() -> f32 { // two\n 1.5e-3 + 2e5 + 0.1 - 10 // three\n}"), @r"
    fn main() -> f32 {
      (((0.0015 + 200000.0) + 0.1) - 10)
    }
    ");
}
