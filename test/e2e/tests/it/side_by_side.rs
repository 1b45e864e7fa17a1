//! Batches that threads run side by side: the same lines, whatever happens in one of them.

use cohort_e2e::Rng;

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
