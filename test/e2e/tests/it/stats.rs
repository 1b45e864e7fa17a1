//! `--stats` and `--benchmark-repetitions`.

use std::fs;

use cohort_e2e::Rng;
use serde_json::Value as Json;

use crate::models::{model_case, to_text};

fn stats_of(arguments: &[&str]) -> (usize, Json) {
    let case = model_case("treelstm");
    let model = case.shipped();
    let instances = case.instances(&model, 30, &mut Rng::new(41));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let call = model.batch_run().args(arguments).arg("--stats").arg(&path);
    let outcome = call.run(&to_text(&instances)).expect_code(0);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let stats = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error} in {text:?} from {}", outcome.describe()));
    (outcome.lines().len(), stats)
}

fn number(stats: &Json, name: &str) -> f64 {
    let value = stats[name].as_f64();
    value.unwrap_or_else(|| panic!("`{name}` is not a number in {stats}"))
}

#[test]
fn stats_tell_times_rows_and_launches() {
    let (records, stats) = stats_of(&[]);
    assert_eq!(number(&stats, "instances"), records as f64);
    for name in [
        "compile_seconds",
        "load_seconds",
        "read_seconds",
        "record_seconds",
        "execute_seconds",
        "write_seconds",
    ] {
        let seconds = number(&stats, name);
        assert!(
            (0.0..=number(&stats, "wall_seconds")).contains(&seconds),
            "{name}: {seconds}"
        );
    }
    let launches = number(&stats, "kernel_launches");
    let rows = number(&stats, "rows");
    let mean = number(&stats, "mean_rows_per_launch");
    assert!(launches >= 1.0 && rows >= launches, "{stats}");
    assert!((mean - rows / launches).abs() <= 1e-3 * mean, "{stats}");
    assert!(number(&stats, "peak_memory_bytes") > 0.0, "{stats}");
}

#[test]
fn batching_launches_fewer_kernels_for_the_same_rows() {
    let (_, batched) = stats_of(&["--no-sharing"]);
    let (_, unbatched) = stats_of(&["--no-batch"]);
    assert_eq!(number(&batched, "rows"), number(&unbatched, "rows"));
    let (few, many) = (
        number(&batched, "kernel_launches"),
        number(&unbatched, "kernel_launches"),
    );
    assert!(few < many, "{few} launches batched, {many} unbatched");
}

#[test]
fn repetitions_are_timed_one_by_one_and_write_each_record_once() {
    let (records, stats) = stats_of(&["--benchmark-repetitions", "3"]);
    assert_eq!(records, 30);
    let repetitions = stats["repetitions"]
        .as_array()
        .expect("a list of repetitions");
    assert_eq!(repetitions.len(), 3);
    for repetition in repetitions {
        assert!(number(repetition, "record_seconds") >= 0.0);
        assert!(number(repetition, "execute_seconds") >= 0.0);
    }
}

#[test]
fn equal_calls_on_a_parameters_row_are_made_once_a_batch() {
    let (_, shared) = stats_of(&[]);
    let (_, apart) = stats_of(&["--no-sharing"]);
    assert!(
        number(&shared, "rows") < number(&apart, "rows"),
        "words repeat: {shared} against {apart}"
    );
    assert_eq!(
        number(&shared, "kernel_launches"),
        number(&apart, "kernel_launches")
    );
}

#[test]
fn equal_calls_on_a_parameters_row_are_kept_for_later_batches() {
    let (_, kept) = stats_of(&["--batch", "3"]);
    let (_, forgotten) = stats_of(&["--batch", "3", "--keep-memory", "0"]);
    assert!(
        number(&kept, "rows") < number(&forgotten, "rows"),
        "words repeat: {kept} against {forgotten}"
    );
    assert!(number(&kept, "kept_bytes") > 0.0, "{kept}");
    assert_eq!(number(&forgotten, "kept_calls"), 0.0);
    let benchmark = ["--benchmark-repetitions", "2", "--batch", "3"];
    let (_, cold) = stats_of(&benchmark);
    let (_, warm) = stats_of(&[&benchmark[..], &["--benchmark-warm"]].concat());
    let rows = number(&cold, "rows");
    assert_eq!(rows, number(&kept, "rows"));
    assert_eq!(rows - number(&cold, "kept_calls"), number(&warm, "rows"));
}
