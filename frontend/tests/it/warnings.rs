//! Warnings of programs that compile.

use crate::support;

/// The names that a program is warned of.
fn warned(text: &str) -> Vec<String> {
    let mut sources = cohort_frontend::Sources::new();
    let file = sources.add("w.coh", text);
    let checked = match cohort_frontend::check(&sources, file) {
        Ok(checked) => checked,
        Err(errors) => panic!("{}", support::shown(&errors, &sources)),
    };
    let names = checked.warnings().iter().map(|warning| {
        assert_eq!(warning.code, "W0002");
        let name = warning.message.split('`').nth(1);
        name.unwrap_or_default().to_owned()
    });
    names.collect()
}

#[test]
fn a_value_that_nothing_uses_loses_its_error() {
    let text = "dim D
        param w: f32[9, D]
        fn deep(k: i32) -> i32 { if k > 0 { deep(k / k) } else { 0 } }
        fn plain(k: i32) -> i32 { k + 1 }
        fn main(xs: [i32], k: i32, x: f32[n, D], y: f32[m, D]) -> f32[D] {
          let a = xs[k];
          let b = w[k];
          let c = 7 / k;
          let d = deep(k);
          let e: f32[n, D] = y;
          let f = while k > 0 with (i = 0) { i + 1 };
          let (g, h) = (xs[0], 1);
          let i = map(xs, |x| 1 % x);
          if k > 1 { let j = gather(x, stack(xs)); w[0] } else { w[1] }
        }";
    let names = ["a", "b", "c", "d", "e", "f", "g", "i", "j"];
    assert_eq!(warned(text), names);
}

#[test]
fn what_is_used_shown_marked_or_harmless_is_no_warning() {
    let text = "dim D
        param w: f32[9, D]
        fn plain(k: i32) -> i32 { k + 1 }
        fn main(xs: [i32], k: i32, x: f32[n, D]) -> (f32[D], f32[_, D]) {
          let a = tanh(x);
          let b = plain(k) / 2;
          let c = w[3];
          let d = debug(\"picked\", w[k]);
          let _e = w[k];
          let _ = xs[k];
          let (f, g) = (xs[k], xs[0]);
          let h = len(xs) / f;
          (w[h], zeros([h, D]))
        }";
    assert_eq!(warned(text), [""; 0]);
}
