//! Batch invariance: an instance's text of output is the same whatever it is computed with.

use cohort_e2e::{BatchRun, Model, Outcome, Rng};
use serde_json::Value as Json;

use crate::models::{MODELS, to_text};

/// Every way to run that must give the same text for the same lines.
const WAYS: &[&[&str]] = &[
    &["--batch", "1"],
    &["--batch", "3", "--keep-memory", "2K"],
    &["--batch", "1000000"],
    &["--no-batch"],
    &["--no-sharing"],
    &["--in-flight", "1"],
    &["--in-flight", "3", "--keep-memory", "1K"],
    &["--in-flight", "64", "--threads", "2"],
    &["--threads", "1"],
    &["--threads", "2"],
    &["--threads", "2", "--batch", "5", "--keep-memory", "0"],
    &["--threads", "3", "--batch", "2"],
    &["--scheduler", "depth"],
    &["--scheduler", "agenda"],
    &["--scheduler", "lookahead", "--batch", "11"],
    &["--granularity", "instance", "--threads", "2"],
    &["--without", "gather-fusion"],
];

#[track_caller]
fn run(call: BatchRun, instances: &[Json]) -> (Vec<String>, Outcome) {
    let outcome = call.run(&to_text(instances)).expect_code(0);
    let lines = outcome.lines();
    assert_eq!(
        lines.len(),
        instances.len(),
        "the number of records of {}",
        outcome.describe()
    );
    (lines, outcome)
}

/// Compares texts one by one, so that a failure shows the instance and not all of them.
#[track_caller]
fn expect_same(expected: &[String], actual: &[String], instances: &[Json], outcome: &Outcome) {
    assert_eq!(
        expected.len(),
        actual.len(),
        "the number of records of {}",
        outcome.describe()
    );
    for ((expected, actual), instance) in expected.iter().zip(actual).zip(instances) {
        assert!(
            expected == actual,
            "not the bits of the first run\ninstance {instance}\nfirst {expected}\nthen  {actual}\n\
             from {}",
            outcome.describe()
        );
    }
}

#[track_caller]
fn check_invariance(model: &Model, instances: &[Json], rng: &mut Rng) {
    let (expected, _) = run(model.batch_run(), instances);
    let compiled = model.compile(&[]);
    for way in WAYS {
        let (actual, outcome) = run(compiled.batch_run().args(way), instances);
        expect_same(&expected, &actual, instances, &outcome);
    }

    let mut order: Vec<usize> = (0..instances.len()).collect();
    rng.shuffle(&mut order);
    let permuted: Vec<Json> = order
        .iter()
        .map(|&index| instances[index].clone())
        .collect();
    let of_permuted: Vec<String> = order.iter().map(|&index| expected[index].clone()).collect();
    let (actual, outcome) = run(compiled.batch_run(), &permuted);
    expect_same(&of_permuted, &actual, &permuted, &outcome);

    let duplicated = [instances, instances, instances].concat();
    let of_duplicated = [&expected[..], &expected, &expected].concat();
    let (actual, outcome) = run(compiled.batch_run(), &duplicated);
    expect_same(&of_duplicated, &actual, &duplicated, &outcome);
}

#[test]
fn shipped_models_give_the_same_bits_in_every_way() {
    for case in MODELS {
        let mut rng = Rng::new(11);
        let model = case.shipped();
        let instances = case.instances(&model, 40, &mut rng);
        check_invariance(&model, &instances, &mut rng);
    }
}

#[test]
fn odd_dims_give_the_same_bits_in_every_way() {
    for case in MODELS {
        let mut rng = Rng::new(12);
        let model = case.with_sizes([28, 61, 257, 3], &mut rng);
        let instances = case.instances(&model, 23, &mut rng);
        check_invariance(&model, &instances, &mut rng);
    }
}

#[test]
fn tiny_dims_give_the_same_bits_in_every_way() {
    for case in MODELS {
        let mut rng = Rng::new(13);
        let model = case.with_sizes([3, 3, 1, 28], &mut rng);
        let instances = case.instances(&model, 40, &mut rng);
        check_invariance(&model, &instances, &mut rng);
    }
}

/// Tile sizes change with the number of rows, so every small number of rows is tried.
#[test]
fn every_small_batch_gives_the_same_bits() {
    let case = &MODELS[0];
    let mut rng = Rng::new(14);
    let model = case.with_sizes([28, 28, 61, 3], &mut rng);
    let instances = case.instances(&model, 35, &mut rng);
    let (expected, _) = run(model.batch_run(), &instances);
    let compiled = model.compile(&[]);
    for batch in [2, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 31, 32, 33] {
        let call = compiled.batch_run().args(&["--batch", &batch.to_string()]);
        let (actual, outcome) = run(call, &instances);
        expect_same(&expected, &actual, &instances, &outcome);
    }
}

#[test]
fn the_tool_verifies_every_shipped_model_itself() {
    for case in MODELS {
        let mut rng = Rng::new(15);
        let model = case.shipped();
        let instances = case.instances(&model, 12, &mut rng);
        let outcome = model
            .batch_run()
            .args(&["--verify-batch-invariance", "8", "--seed", "3"])
            .run(&to_text(&instances))
            .expect_code(0);
        let holds = outcome.output.starts_with("batch invariance holds: ");
        assert!(holds, "{}\n{}", outcome.output, outcome.describe());
    }
}
