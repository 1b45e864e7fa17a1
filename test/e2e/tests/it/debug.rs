//! `debug`: values on the standard error stream, in the order of the program within an instance, and
//! alike however instances are batched.

use std::collections::BTreeMap;

use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::language::check;

const TEXT: &str = "dim H
    param w: f32[H, H]
    type Tree = Leaf(i32) | Node(left: Tree, right: Tree)
    fn deep(k: i32, h: f32[H]) -> f32[H] {
      if k <= 0 { h } else { deep(k - 1, debug(\"step\", tanh(h @ w))) }
    }
    fn main(k: i32, x: f32[H], t: Tree, y: f32[n, H]) -> (f32[H], i32, f32[n, H]) {
      let _ = debug(\"start\", (k, t, x));
      let a = deep(k, x);
      let _ = debug(\"unused\", sum(a) > 1e9);
      let b = debug(\"b\", k + 1);
      let c = debug(\"rows\", y @ w);
      let s = debug(\"an “array”\", map(range(k), |i| x * f32(i)));
      let q = stack(s);
      (debug(\"last\", a + x), range(b)[debug(\"index\", 2)], c + sum(q) - y)
    }";

const INPUT: &str = r#"{"id":"a","k":2,"x":[1,2],"t":{"Node":[{"Leaf":[1]},{"Leaf":[2]}]},"y":[[1,2],[3,4]]}
{"k":3,"x":[0.5,-1],"t":{"Leaf":[1]},"y":[]}
{"id":"bad","k":0,"x":[0.5,"NaN"],"t":{"Leaf":[1]},"y":[[1,1]]}
{"id":"c","k":5,"x":[0,0],"t":{"Leaf":[0]},"y":[[0,1]]}
"#;

/// What each instance shows, in order: texts and values.
fn shown(stderr: &str) -> BTreeMap<String, Vec<(Json, Json)>> {
    let mut of_instances: BTreeMap<String, Vec<(Json, Json)>> = BTreeMap::new();
    for line in stderr.lines().filter(|line| line.starts_with('{')) {
        let line: Json = serde_json::from_str(line).unwrap_or_default();
        let of_instance = of_instances.entry(line["id"].to_string()).or_default();
        of_instance.push((line["debug"].clone(), rounded(&line["value"])));
    }
    of_instances
}

fn rounded(value: &Json) -> Json {
    match value {
        Json::Array(values) => values.iter().map(rounded).collect(),
        Json::Number(number) if number.is_f64() => {
            let coarse = (number.as_f64().unwrap_or(0.0) * 1e4).round() / 1e4;
            // Without the sign of a zero.
            Json::from(coarse + 0.0)
        }
        other => other.clone(),
    }
}

#[test]
fn every_way_of_running_shows_what_the_oracle_shows() {
    let model = Model::from_text(TEXT, &[("H", 2)], &mut Rng::new(95));
    let run = |arguments: &[&str]| model.batch_run().args(arguments).run(INPUT);
    let expected = shown(&run(&["--oracle"]).stderr);
    assert_eq!(expected.len(), 4, "{expected:?}");
    let texts: Vec<&Json> = expected["\"a\""].iter().map(|(text, _)| text).collect();
    let in_order = [
        "start",
        "step",
        "step",
        "unused",
        "b",
        "rows",
        "an “array”",
        "last",
        "index",
    ];
    assert_eq!(texts, in_order);
    let mut lines = None;
    for arguments in [
        &[][..],
        &["--batch", "1"],
        &["--no-batch"],
        &["--in-flight", "2"],
        &["--threads", "2", "--batch", "3"],
        &["--scheduler", "agenda"],
        &["--granularity", "operator"],
        &["--device", "gpu-sim"],
    ] {
        let outcome = run(arguments);
        assert_eq!(shown(&outcome.stderr), expected, "with {arguments:?}");
        if !matches!(arguments, ["--granularity" | "--device", _]) {
            let lines = lines.get_or_insert_with(|| outcome.lines());
            assert_eq!(*lines, outcome.lines(), "with {arguments:?}");
        }
    }
}

/// What is shown changes no bit of what comes out.
#[test]
fn results_are_those_of_the_program_without() {
    let mut rng = Rng::new(95);
    let with = Model::from_text(TEXT, &[("H", 2)], &mut rng);
    let mut text = String::new();
    let mut rest = TEXT;
    while let Some(at) = rest.find("debug(") {
        let comma = at + rest[at..].find("\", ").unwrap_or(0) + 3;
        text.push_str(&rest[..at]);
        // At the same columns, which errors name.
        let width = rest[at..comma].chars().count();
        text.push_str(&format!("{:>width$}", "("));
        rest = &rest[comma..];
    }
    text.push_str(rest);
    assert!(!text.contains("debug"), "{text}");
    let without = Model::from_text(&text, &[("H", 2)], &mut Rng::new(95));
    let lines = |model: &Model| {
        let name = model.source.display().to_string();
        let lines = model.batch_run().run(INPUT).lines().into_iter();
        // Each program has a folder of its own.
        lines
            .map(|line| line.replace(&name, "program"))
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&with), lines(&without));
}

/// An instance that fails has shown what came before; checks and repetitions show nothing twice.
#[test]
fn what_comes_before_an_error_is_shown_once() {
    let text = "param w: f32[3]
        fn f(k: i32, x: f32[3]) -> f32[3] { if k == 0 { x } else { f(k - 1, x * w) } }
        fn main(k: i32, x: f32[3]) -> f32 {
          let y = f(k, x);
          let _ = debug(\"y\", sum(y) - sum(y));
          debug(\"picked\", y[k]) + 0.0
        }";
    let model = Model::from_text(text, &[], &mut Rng::new(96));
    let input = r#"{"id":"a","k":1,"x":[1,2,3]}
{"id":"b","k":7,"x":[0,0,0]}
"#;
    for arguments in [&[][..], &["--oracle"], &["--benchmark-repetitions", "2"]] {
        let outcome = model.batch_run().args(arguments).run(input).expect_code(1);
        let shown = shown(&outcome.stderr);
        assert_eq!(shown["\"a\""].len(), 2, "{}", outcome.describe());
        let of_failed = [(Json::from("y"), Json::from(0.0))];
        assert_eq!(shown["\"b\""], of_failed, "{}", outcome.describe());
    }
    let outcome = model
        .batch_run()
        .args(&["--verify-batch-invariance", "2"])
        .run(input);
    assert_eq!(shown(&outcome.stderr), BTreeMap::new());
}

#[test]
fn within_conditions_loops_and_closures() {
    check(
        "dim H
        param w: f32[H, H]
        fn main(k: i32, x: f32[H], xs: [f32[H]]) -> (f32[H], f32, [f32[H]], i32) {
          let h = while debug(\"go on\", sum(abs(h))) > 0.5 && n < k with (h = x, n = 0) { (debug(\"h\", 0.5 * tanh(h @ w)), n + 1) };
          let s = fold(xs, 0.0, |acc, y| if debug(\"large\", y[0] > acc) { y[0] } else { acc });
          let m = match debug(\"k\", k) { 0 => x, _ if sum(debug(\"x\", x)) > 0.0 => -x, _ => x * 2.0 };
          let (h, n) = h;
          (h + m, s, map(xs, |y| debug(\"y\", y + h)), debug(\"n\", n))
        }"
        .replace("\\\"", "\"")
        .as_str(),
        &[("H", 3)],
        &[
            r#"{"k":3,"x":[1,2,3],"xs":[[1,2,3],[0,0,0]]}"#,
            r#"{"k":0,"x":[-1,-2,-3],"xs":[]}"#,
            r#"{"k":1,"x":[-1,-2,-3],"xs":[[4,5,6]]}"#,
        ],
    );
}
