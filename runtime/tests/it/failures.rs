//! An instance that fails gets its error record; the others get their results.

use cohort_runtime::{Batch, Config, Error, Fault, Limits};

use crate::program::*;

const GOOD: &str = "{\"Node\": [{\"Leaf\": [1]}, {\"Leaf\": [2]}]}";

fn limits() -> Limits {
    Limits {
        max_depth: 200,
        max_nodes: 1000,
        max_memory: 1 << 20,
        max_steps: 5000,
        max_time: None,
    }
}

fn session(batch: Batch) -> cohort_runtime::Session {
    tree_session(Config {
        batch,
        limits: limits(),
        ..Config::default()
    })
}

/// The program fails on a tree that holds the leaf after some harmless calls.
fn with_leaf(word: i32) -> String {
    format!("{{\"Node\": [{GOOD}, {{\"Node\": [{GOOD}, {{\"Leaf\": [{word}]}}]}}]}}")
}

/// Runs the tree between good ones; gives its record.
fn failure_of(tree: &str) -> serde_json::Value {
    let good = format!("{{\"id\": 1, \"t\": {GOOD}}}\n");
    let input = format!("{good}{good}{{\"id\": \"bad\", \"t\": {tree}}}\n{good}");
    let (alone, _) = run(&mut session(Batch::All), &good);
    let mut records = Vec::new();
    for batch in [Batch::All, Batch::Count(1), Batch::Unbatched] {
        let (output, stats) = run(&mut session(batch), &input);
        assert_eq!((stats.instances, stats.failed), (4, 1));
        assert_eq!(output.len(), 4);
        for index in [0, 1, 3] {
            assert_eq!(output[index], alone[0]);
        }
        records.push(output[2].clone());
    }
    assert!(
        records.iter().all(|record| *record == records[0]),
        "{records:?}"
    );
    let record: serde_json::Value = serde_json::from_str(&records[0]).unwrap();
    assert_eq!(record["id"], "bad");
    record["error"].clone()
}

fn check(tree: &str, kind: &str, message: &str) {
    let error = failure_of(tree);
    assert_eq!(error["kind"], kind);
    assert_eq!(error["message"], message);
}

#[test]
fn an_index_out_of_range_names_index_length_and_place() {
    check(
        &with_leaf(41),
        "index_out_of_range",
        "index 41 is out of range for length 10 (trees.coh:12:9)",
    );
}

#[test]
fn recursion_is_limited() {
    let chain = "{\"Node\": [\"Empty\", ".repeat(300) + "\"Empty\"" + &"]}".repeat(300);
    check(
        &chain,
        "depth_limit",
        "recursion went deeper than 200 calls (trees.coh:1:1); raise the limit with --max-depth",
    );
}

#[test]
fn the_stack_is_limited() {
    let error = failure_of(&with_leaf(RECURSE_FOREVER));
    assert_eq!(error["kind"], "depth_limit");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("recursion used up its stack at a depth of"),
        "{message}"
    );
}

#[test]
fn calls_are_limited() {
    check(
        &with_leaf(RECORD_FOREVER),
        "node_limit",
        "needs more than 1000 kernel calls (trees.coh:3:5); raise the limit with --max-nodes",
    );
}

#[test]
fn memory_is_limited() {
    check(
        &with_leaf(ALLOCATE_FOREVER),
        "memory_limit",
        "needs more than 1048576 bytes; raise the limit with --max-memory",
    );
}

#[test]
fn rows_count_as_memory() {
    let mut small = tree_session(Config {
        limits: Limits {
            max_memory: 2000,
            ..Limits::default()
        },
        ..Config::default()
    });
    let (output, _) = run(
        &mut small,
        &format!("{{\"t\": {}}}", with_leaf(RECORD_FOREVER)),
    );
    assert!(
        output[0].contains("needs more than 2000 bytes (trees.coh:3:5)"),
        "{output:?}"
    );
}

#[test]
fn iterations_are_limited() {
    check(
        &with_leaf(LOOP_FOREVER),
        "step_limit",
        "needs more than 5000 turns of loops and calls; raise the limit with --max-steps",
    );
}

#[test]
fn deep_inputs_run_within_the_default_limits() {
    let chain = |depth: usize| {
        format!(
            "{{\"t\": {}\"Empty\"{}}}\n",
            "{\"Node\": [{\"Leaf\": [1]}, ".repeat(depth),
            "]}".repeat(depth)
        )
    };
    let input = chain(99_000) + &chain(100_001) + &chain(1_000_000) + &chain(3);
    let (output, stats) = run(&mut tree_session(Config::default()), &input);
    assert_eq!(stats.failed, 2);
    assert!(output[0].contains("\"output\"") && output[3].contains("\"output\""));
    for line in &output[1..3] {
        assert!(line.contains("depth_limit"), "{line}");
    }
}

#[test]
fn many_failures_leave_nothing_behind() {
    let bad = format!("{{\"t\": {}}}\n", with_leaf(99));
    let good = format!("{{\"t\": {GOOD}}}\n");
    let input = bad.repeat(500) + &good + &bad.repeat(500);
    let (output, stats) = run(&mut session(Batch::All), &input);
    assert_eq!((stats.instances, stats.failed), (1001, 1000));
    assert_eq!(stats.rows, 3);
    assert!(output[500].starts_with("{\"id\": 501, \"output\": "));
}

#[test]
fn broken_compiled_code_is_an_internal_error() {
    for word in [FORGE_A_HANDLE, FORGE_A_FAILURE] {
        let input = format!("{{\"t\": {}}}\n", with_leaf(word));
        let error = try_run(&mut session(Batch::All), input.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{error}");
        assert_eq!(error.fault(), Fault::Internal);
    }
}
