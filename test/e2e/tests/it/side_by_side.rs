//! Batches that threads run side by side: the same lines, whatever happens in one of them.

use cohort_e2e::{Model, Rng};

use crate::models::{MODELS, balanced, model_case, to_text};

#[test]
fn batches_side_by_side_give_what_one_thread_gives() {
    for case in MODELS {
        let mut rng = Rng::new(93);
        let model = case.shipped();
        let input = to_text(&case.instances(&model, 40, &mut rng));
        let compiled = model.compile(&[]);
        let alone = compiled.batch_run().run(&input).expect_code(0).lines();
        for way in [
            &["--threads", "2", "--batch", "3"][..],
            &["--threads", "3", "--batch", "4", "--keep-memory", "0"],
            &[
                "--threads",
                "2",
                "--batch",
                "7",
                "--benchmark-repetitions",
                "3",
            ],
            &["--threads", "2", "--in-flight", "5"],
        ] {
            let beside = compiled.batch_run().args(way).run(&input).expect_code(0);
            assert_eq!(
                alone,
                beside.lines(),
                "{}, {}",
                case.name,
                beside.describe()
            );
        }
    }
}

/// A batch that is alone, and takes long, is divided among threads.
#[test]
fn a_divided_batch_gives_what_it_gives_whole() {
    let model = model_case("treelstm").shipped();
    let input: String = (0..23)
        .map(|number| format!("{{\"t\": {}}}\n", balanced(5 + number % 6)))
        .collect();
    let run = |way: &[&str]| {
        let run = model.batch_run().args(&["--benchmark-repetitions", "3"]);
        run.args(way).run(&input).expect_code(0).lines()
    };
    let whole = run(&["--threads", "1"]);
    assert_eq!(whole, run(&["--threads", "2"]));
    assert_eq!(whole, run(&["--threads", "3", "--batch", "16"]));
}

/// Some instances are wrong, some too large, and one is so large that its batch is cut.
#[test]
fn what_fails_in_one_batch_fails_in_no_other() {
    let model = model_case("treelstm").shipped();
    let instances = |count: usize| -> String {
        (0..count)
            .map(|number| match number % 17 {
                3 => "{\"id\": \"wrong\", \"t\": {\"Leaf\": [\"?\"]}}\n".to_owned(),
                5 => format!("{{\"t\": {}}}\n", balanced(12)),
                _ => format!("{{\"t\": {}}}\n", balanced(number % 6)),
            })
            .collect()
    };
    let limits = ["--max-nodes", "2000", "--max-seconds", "60"];
    for count in [1, 8, 60, 61] {
        let input = instances(count);
        let run = |way: &[&str]| model.batch_run().args(&limits).args(way).run(&input);
        let alone = run(&["--threads", "1"]);
        for way in [
            &["--threads", "2", "--batch", "4"][..],
            &["--threads", "4", "--batch", "5"],
            &["--threads", "2", "--batch", "1"],
        ] {
            let beside = run(way);
            assert_eq!(alone.lines(), beside.lines(), "{}", beside.describe());
            assert_eq!(alone.code, beside.code, "{}", beside.describe());
        }
    }
}

/// Tensors and numbers drawn by chance decide when an instance ends, if it does.
const DECIDING: &str = "dim D
  param w: f32[D, D]
  fn main(x: f32[D], most: f32) -> (f32[D], i32) {
    while sum(x * x) < most with (x = x, k = 0) {
      if random(k) < 0.5 { (tanh(x @ w) + random(k, [D]), k + 1) } else { (x * 1.25 + 0.0625, k + 1) }
    }
  }";

/// With several threads, instances of each are alive beside others.
#[test]
fn instances_that_decide_by_themselves_depend_on_no_thread() {
    let model = Model::from_text(DECIDING, &[("D", 3)], &mut Rng::new(31));
    let compiled = model.compile(&[]);
    for count in [1, 9, 131] {
        let input: String = (0..count)
            .map(|number| match number % 13 {
                3 => "{\"id\": \"wrong\", \"x\": [1.0]}\n".to_owned(),
                5 => format!("{{\"x\": [0.5, {number}, 1e38], \"most\": 3e38}}\n"),
                7 => format!("{{\"id\": {number}, \"x\": [0.0, 0.1, 0.2], \"most\": 1e30}}\n"),
                _ => format!(
                    "{{\"x\": [0.1, 0.{number}, -0.2], \"most\": {}}}\n",
                    number % 5
                ),
            })
            .collect();
        for limits in [
            &["--max-steps", "50"][..],
            &["--max-nodes", "90", "--max-steps", "200"],
            &["--max-steps", "50", "--draw", "7"],
        ] {
            let run = |way: &[&str]| compiled.batch_run().args(limits).args(way).run(&input);
            let alone = run(&["--threads", "1"]);
            for way in [
                &["--threads", "2", "--batch", "4"][..],
                &["--threads", "3", "--batch", "1"],
                &["--threads", "2"],
                &["--threads", "2", "--in-flight", "6"],
                &["--threads", "4", "--in-flight", "1"],
            ] {
                let beside = run(way);
                assert_eq!(alone.lines(), beside.lines(), "{}", beside.describe());
                assert_eq!(alone.code, beside.code, "{}", beside.describe());
            }
        }
    }
}
