//! Programs whose compile time grew faster than they do.

use std::time::{Duration, Instant};

use cohort_e2e::BatchRun;

/// Compiles and runs, which takes a second or two, and took minutes or more.
#[track_caller]
fn check(text: &str, input: &str, output: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.coh");
    std::fs::write(&path, text).expect("the temporary folder is writable");
    let begin = Instant::now();
    let outcome = BatchRun::new(&path).run(input).expect_code(0);
    let took = begin.elapsed();
    assert_eq!(outcome.lines(), [output]);
    assert!(took < Duration::from_secs(40), "{took:?}");
}

/// Inlined all the way, the last is called 2^24 times.
#[test]
fn functions_that_each_call_the_next_twice() {
    let chain = |calls: &str, ty: &str, last: &str| {
        let functions: String = (0..24)
            .map(|at| {
                format!(
                    "fn g{at}(x: {ty}) -> {ty} {{ {} }}\n",
                    calls.replace('#', &(at + 1).to_string())
                )
            })
            .collect();
        format!("{functions}fn g24(x: {ty}) -> {ty} {{ {last} }}\n")
    };
    let text = chain("if x > 5 { x } else { g#(g#(x)) }", "i32", "x + 1");
    check(
        &format!("{text}fn main(x: i32) -> i32 {{ g0(x) }}\n"),
        "{\"x\": 1}\n",
        "{\"id\": 1, \"output\": 7}",
    );
    // Of 2^12 tensors, which are computed.
    let text = chain("g#(g#(x))", "f32[2]", "x * 1.0").replace(
        "g12(x: f32[2]) -> f32[2] { g13(g13(x)) }",
        "g12(x: f32[2]) -> f32[2] { g24(x) }",
    );
    check(
        &format!("{text}fn main(x: f32[2]) -> f32[2] {{ g0(x) }}\n"),
        "{\"x\": [1, -2.5]}\n",
        "{\"id\": 1, \"output\": [1.0, -2.5]}",
    );
}

#[test]
fn many_layers_with_residuals_and_norms() {
    let text = "fn norm(x: f32[n, 4]) -> f32[n, 4] {
          let d = x - reshape(mean(x, axis = 1), [n, 1]);
          d / sqrt(reshape(mean(d * d, axis = 1), [n, 1]) + 1.0)
        }
        fn main(x: f32[n, 4], w: f32[4, 4]) -> f32[n, 4] {
          for l in range(96) with (h = x) { h + norm(h @ w) * f32(l) }
        }";
    check(
        text,
        "{\"x\": [[1, 2, 3, 4]], \"w\": [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]}\n",
        "{\"id\": 1, \"output\": [[1.0, 2.0, 3.0, 4.0]]}",
    );
}

#[test]
fn pairs_of_many_constructors() {
    let names: Vec<String> = (0..90).map(|at| format!("C{at}")).collect();
    let arms: String = (0..90)
        .map(|at| format!("(C{at}, C{at}) => {at}, "))
        .collect();
    check(
        &format!(
            "type T = {}\nfn main(a: T, b: T) -> i32 {{ match (a, b) {{ {arms} _ => -1 }} }}\n",
            names.join(" | ")
        ),
        "{\"a\": \"C77\", \"b\": \"C77\"}\n",
        "{\"id\": 1, \"output\": 77}",
    );
}

/// Each sine was some dozens of operations of one function. They are calls, and mean the same.
#[test]
fn many_functions_of_host_scalars() {
    let steps: String = (2..300)
        .map(|at| {
            format!("let a = sin(a * 0.25 + f32(k % (i + {at}))) + exp(cos(a) * 0.25 - 1.0);\n")
        })
        .collect();
    crate::language::check(
        &format!(
            "fn main(k: i32, i: i32, x: f32[2]) -> f32[2] {{ let a = 0.5;\n{steps} x * a }}\n"
        ),
        &[],
        &[
            r#"{"k": 7, "i": 1, "x": [1, -2]}"#,
            r#"{"k": -100, "i": 3, "x": [0.5, 4]}"#,
            r#"{"k": 7, "i": -9, "x": [1, -2]}"#,
        ],
    );
}
