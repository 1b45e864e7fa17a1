//! Instances that a tensor leads astray: each is an error record of its own, in every mode, and the
//! others keep their bits.

use cohort_e2e::records::{Closeness, Record, compare_records};
use cohort_e2e::{Model, Rng};

/// Every mode that must not matter.
const MODES: [&[&str]; 8] = [
    &[],
    &["--batch", "1"],
    &["--batch", "3"],
    &["--no-batch"],
    &["--threads", "2"],
    &["--in-flight", "1"],
    &["--in-flight", "3"],
    &["--in-flight", "64"],
];

struct Case {
    text: &'static str,
    limit: &'static [&'static str],
    good: &'static [&'static str],
    bad: &'static [&'static str],
    kind: &'static str,
    /// What each message must say.
    says: &'static str,
}

impl Case {
    /// Bad lines between the good ones, against the good ones alone.
    #[track_caller]
    fn check(&self) {
        let model = Model::from_text(self.text, &[("H", 3)], &mut Rng::new(71));
        let good = self.good.join("\n");
        let mut mixed = Vec::new();
        for index in 0..self.good.len().max(self.bad.len() + 1) {
            mixed.push(self.good[index % self.good.len()]);
            mixed.extend(self.bad.get(index));
        }
        let clean = model.batch_run().args(self.limit).run(&good).expect_code(0);
        let compiled = model.compile(&[]);
        for mode in MODES {
            let run = compiled.batch_run().args(self.limit).args(mode);
            let outcome = run.run(&mixed.join("\n")).expect_code(1);
            let lines = outcome.lines();
            assert_eq!(lines.len(), mixed.len(), "{}", outcome.describe());
            let mut expected = clean.lines().into_iter().cycle();
            for (line, text) in lines.iter().zip(&mixed) {
                if !self.bad.contains(text) {
                    let expected = expected.next().expect("an endless iterator");
                    assert_eq!(*line, expected, "{text} of {}", outcome.describe());
                    continue;
                }
                let record = Record::parse(line).expect("already checked");
                let error = record.result.expect_err("a bad line has no output");
                assert_eq!(error.kind, self.kind, "{text} of {}", outcome.describe());
                assert!(
                    error.message.contains(self.says),
                    "no word of {}: {}",
                    self.says,
                    error.message
                );
            }
        }
    }

    /// The oracle finds the same.
    #[track_caller]
    fn check_oracle(&self) {
        let model = Model::from_text(self.text, &[("H", 3)], &mut Rng::new(71));
        for (lines, is_bad) in [(self.good, false), (self.bad, true)] {
            for line in model.oracle_lines(&lines.join("\n")) {
                let record = Record::parse(&line).expect("the oracle's own");
                let kind = record.result.err().map(|error| error.kind);
                assert_eq!(kind.as_deref(), is_bad.then_some(self.kind), "{line}");
            }
        }
    }
}

#[test]
fn a_loop_that_never_ends() {
    Case {
        text: "dim H
            param w: f32[H]
            fn main(x: f32[H]) -> (f32[H], i32) {
              let (x, steps, _) = while go with (x = x, steps = 0, go = true) {
                let x = tanh(x * 1.5 + 0.0 * w);
                (x, steps + 1, sum(x) > 0.5)
              };
              (x, steps)
            }",
        limit: &["--max-steps", "300"],
        good: &[
            r#"{"id":"a","x":[-0.1,0.2,-0.3]}"#,
            r#"{"id":"b","x":[0.1,0.1,-0.1]}"#,
            r#"{"id":"c","x":[-1,-1,-1]}"#,
            r#"{"id":"d","x":[0.5,-0.25,-0.25]}"#,
        ],
        bad: &[
            r#"{"id":"x","x":[1,1,1]}"#,
            r#"{"id":"y","x":[0.5,0.25,0.125]}"#,
        ],
        kind: "step_limit",
        says: "--max-steps",
    }
    .check();
}

#[test]
fn a_recursion_without_bottom() {
    Case {
        text: "dim H
            param w: f32[H]
            fn refine(x: f32[H], n: i32) -> (f32[H], i32) {
              if sum(x) > 0.5 {
                let (y, m) = refine(tanh(x * 1.5 + 0.0 * w), n + 1);
                (y + x, m)
              } else {
                (x, n)
              }
            }
            fn main(x: f32[H]) -> (f32[H], i32) { refine(x, 0) }",
        limit: &["--max-depth", "100"],
        good: &[
            r#"{"id":"a","x":[-0.1,0.2,-0.3]}"#,
            r#"{"id":"b","x":[0.1,0.1,-0.1]}"#,
            r#"{"id":"c","x":[-1,-1,-1]}"#,
        ],
        bad: &[r#"{"id":"x","x":[1,1,1]}"#, r#"{"id":"y","x":[0.5,0.5,0]}"#],
        kind: "depth_limit",
        says: "--max-depth",
    }
    .check();
}

#[test]
fn a_branch_that_nan_decides() {
    let case = Case {
        text: "dim H
            param w: f32[H]
            fn main(x: f32[H], k: i32) -> (f32[H], i32) {
              let r = sqrt(x);
              // Asked of few instances only, and seldom of the second root.
              if k > 0 && r[0] > 0.25 && r[1] > 0.25 { (r * w, k) } else { (x + w, -k) }
            }",
        limit: &[],
        good: &[
            r#"{"id":"a","x":[1,1,1],"k":1}"#,
            r#"{"id":"b","x":[0,-1,1],"k":1}"#,
            r#"{"id":"c","x":[-1,-1,1],"k":0}"#,
            r#"{"id":"d","x":[1,0,-1],"k":2}"#,
            r#"{"id":"e","x":[0,0,-1],"k":1}"#,
        ],
        bad: &[
            r#"{"id":"x","x":[-1,1,1],"k":1}"#,
            r#"{"id":"y","x":[1,-1,1],"k":3}"#,
            r#"{"id":"z","x":[-1,-1,-1],"k":1}"#,
        ],
        kind: "nan_decision",
        says: "program.coh:6:",
    };
    case.check();
    case.check_oracle();
}

#[test]
fn a_loop_and_a_choice_that_nan_decides() {
    let case = Case {
        text: "dim H
            param w: f32[H]
            fn main(x: f32[H]) -> (f32[H], i32) {
              let (y, turns, _) = while go with (y = x, turns = 0, go = true) {
                let y = y - 0.25;
                let l = log(y);
                (y * (1.0 + 0.0 * w), turns + argmax(concat(l, l + 1.0)), turns < 2 && sum(l) > -4.0)
              };
              (y, turns)
            }",
        limit: &[],
        good: &[
            r#"{"id":"a","x":[1,1,1]}"#,
            r#"{"id":"b","x":[0.3,0.3,0.3]}"#,
            r#"{"id":"c","x":[0.5,0.4,0.4]}"#,
        ],
        bad: &[
            r#"{"id":"x","x":[0,1,1]}"#,
            r#"{"id":"y","x":[1,1,-3]}"#,
        ],
        kind: "nan_decision",
        says: "program.coh:7:",
    };
    case.check();
    case.check_oracle();
}

/// Layers that a `while` counts and experts that a tensor chooses: the rows that have the same part of a
/// parameter share its product, and none has a matrix of its own.
#[test]
fn rows_that_chose_the_same_part_share_its_product() {
    let text = "dim L, H, E
      param w: f32[L, H, H]
      param b: f32[L, H]
      param gate: f32[H, E]
      param up: f32[E, H, H]
      param down: f32[E, H, H]
      fn main(x: f32[n, H], turns: i32) -> f32[n, H] {
        let (h, _) = while layer < turns with (h = x, layer = 0) {
          let g = tanh(h @ w[layer] + b[layer]);
          let k = argmax(sum(g, axis = 0) @ gate);
          (g + relu(g @ up[k]) @ transpose(down[k]), layer + 1)
        };
        h
      }";
    let mut rng = Rng::new(33);
    let model = Model::from_text(text, &[("L", 3), ("H", 64), ("E", 5)], &mut rng);
    let line = |rows: usize, turns: i32, rng: &mut Rng| {
        let row = |rng: &mut Rng| {
            (0..64)
                .map(|_| rng.signed_unit() as f32)
                .collect::<Vec<_>>()
        };
        let x: Vec<Vec<f32>> = (0..rows).map(|_| row(rng)).collect();
        format!("{{\"x\":{x:?},\"turns\":{turns}}}\n")
    };
    let lines: Vec<String> = [
        (3, 1),
        (0, 2),
        (7, 3),
        (1, 4),
        (1, 0),
        (2, -1),
        (61, 2),
        (5, 3),
    ]
    .into_iter()
    .map(|(rows, turns)| line(rows, turns, &mut rng))
    .collect();
    let input = lines.concat();
    let expected = model.oracle_lines(&input);
    for mode in [
        &[][..],
        &["--batch", "1"],
        &["--in-flight", "3"],
        &["--device", "gpu-sim"],
    ] {
        let outcome = model.batch_run().args(mode).run(&input).expect_code(1);
        compare_records(&expected, &outcome.lines(), Closeness::EachNumber(1e-4))
            .unwrap_or_else(|message| panic!("{message}\nfrom {}", outcome.describe()));
    }
    let explained = |mode: &[&str]| {
        let arguments = ["--quiet", "--explain=json"];
        model
            .batch_run()
            .args(&arguments)
            .args(mode)
            .run(&input)
            .stderr
    };
    let (shared, apart) = (explained(&[]), explained(&["--without", "share-slices"]));
    assert!(!shared.contains("unshared-matrix"), "{shared}");
    assert!(apart.contains("unshared-matrix"), "{apart}");
    let compositions = ["--verify-batch-invariance", "5"];
    model
        .batch_run()
        .args(&compositions)
        .run(&input)
        .expect_code(0);
}

/// A search or a sort over an instance dim looks at every element, as one over a known dim does.
#[test]
fn a_search_over_an_instance_dim_that_meets_no_number() {
    for chosen in ["argmax(r)", "argsort(r)[0]"] {
        let text = format!(
            "dim H
            param w: f32[H]
            fn main(x: f32[n]) -> f32 {{ let r = sqrt(x) + 0.0 * w[0]; let k = {chosen}; x[k] }}"
        );
        let case = Case {
            text: text.leak(),
            limit: &[],
            good: &[
                r#"{"id":"a","x":[1,4,2]}"#,
                r#"{"id":"b","x":[3]}"#,
                r#"{"id":"c","x":[0,0,1,9,2,2,7]}"#,
            ],
            bad: &[
                r#"{"id":"x","x":[1,-1,2]}"#,
                r#"{"id":"y","x":[-4]}"#,
                r#"{"id":"z","x":[1,2,3,4,5,6,-7]}"#,
            ],
            kind: "nan_decision",
            says: "not a number",
        };
        case.check();
        case.check_oracle();
    }
}
