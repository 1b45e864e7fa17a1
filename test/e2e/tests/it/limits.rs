//! Limits: an instance that exceeds one fails alone, and depth alone is no problem.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cohort_e2e::records::{Closeness, Record, compare_records};

use cohort_e2e::{BatchRun, Model, Rng};
use tempfile::TempDir;

use crate::models::{balanced, chain, model_case};

fn line(id: &str, tree: &str) -> String {
    format!("{{\"id\":\"{id}\",\"t\":{tree}}}\n")
}

/// Runs a large instance among small ones under a limit, and then only the small ones without.
#[track_caller]
fn check_limit(model: &Model, large: &str, limit: &[&str], kind: &str) {
    let small: Vec<String> = (0..5)
        .map(|depth| line(&format!("s{depth}"), &chain(depth)))
        .collect();
    let clean = model
        .batch_run()
        .run(&small.concat())
        .expect_code(0)
        .lines();

    let input = [&small[..3], &[line("large", large)], &small[3..]]
        .concat()
        .concat();
    let outcome = model.batch_run().args(limit).run(&input).expect_code(1);
    let mut lines = outcome.lines();
    assert_eq!(lines.len(), 6, "{}", outcome.describe());
    let record = Record::parse(&lines.remove(3)).expect("already checked");
    assert_eq!(
        lines,
        clean,
        "the small instances of {}",
        outcome.describe()
    );
    match record.result {
        Err(error) => {
            assert_eq!(
                error.kind,
                kind,
                "{}: {}",
                outcome.describe(),
                error.message
            );
            let option = limit[0];
            assert!(
                error.message.contains(option),
                "no word of {option}: {}",
                error.message
            );
        }
        Ok(_) => panic!("no error under {limit:?}: {}", outcome.describe()),
    }
}

#[test]
fn depth() {
    let model = model_case("treelstm").shipped();
    check_limit(&model, &chain(200), &["--max-depth", "50"], "depth_limit");
    check_limit(
        &model,
        &chain(200),
        &["--max-depth", "50", "--no-batch"],
        "depth_limit",
    );
}

#[test]
fn nodes() {
    let model = model_case("treelstm").shipped();
    check_limit(&model, &balanced(9), &["--max-nodes", "100"], "node_limit");
}

#[test]
fn memory() {
    let model = model_case("treelstm").shipped();
    check_limit(
        &model,
        &balanced(14),
        &["--max-memory", "1000000"],
        "memory_limit",
    );
}

#[test]
fn the_default_depth_limit_holds() {
    let model = model_case("treefc").shipped();
    let input = line("deep", &chain(150_000)) + &line("small", &chain(1));
    let outcome = model.batch_run().run(&input).expect_code(1);
    let records = outcome.records();
    assert_eq!(records.len(), 2);
    let kind = records[0]
        .result
        .as_ref()
        .map_err(|error| error.kind.as_str());
    assert_eq!(kind, Err("depth_limit"));
    assert!(records[1].result.is_ok());
}

#[test]
fn a_deep_chain_is_no_problem() {
    for name in ["treelstm", "treefc"] {
        let model = model_case(name).shipped();
        let input = line("deep", &chain(20_000)) + &line("small", &chain(1));
        let outcome = model.batch_run().run(&input).expect_code(0);
        compare_records(
            &model.oracle_lines(&input),
            &outcome.lines(),
            Closeness::WholeOutput(1e-3),
        )
        .unwrap_or_else(|message| panic!("{message}\nfrom {}", outcome.describe()));
    }
}

fn program(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("model.coh");
    std::fs::write(&path, text).expect("the temporary folder is writable");
    path
}

/// The kind of each record's error; "" for a result.
fn kinds(records: &[Record]) -> Vec<&str> {
    let kind = |record: &Record| match &record.result {
        Ok(_) => "",
        Err(error) => match error.kind.as_str() {
            "memory_limit" => "memory_limit",
            "time_limit" => "time_limit",
            _ => "another",
        },
    };
    records.iter().map(kind).collect()
}

#[test]
fn instances_that_are_large_together_run_one_after_another() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "fn main(n: i32) -> i32 { let a = map(range(n), |i| i * 2); a[n - 1] + a[0] }\n";
    let path = program(&folder, text);
    // Each takes 16 MB, and all may take 64.
    let input = "{\"n\": 1000000}\n".repeat(10) + "{\"n\": 5}\n";
    let run = BatchRun::new(&path).args(&["--total-memory", "64M", "--max-memory", "40M"]);
    let outcome = run.run(&input).expect_code(0);
    assert_eq!(outcome.records().len(), 11);

    // One that is allowed more than there is fails by itself.
    let input = "{\"n\": 5}\n{\"n\": 90000000}\n{\"n\": 6}\n";
    let run = BatchRun::new(&path).args(&["--total-memory", "64M", "--max-memory", "4G"]);
    let outcome = run.run(input).expect_code(1);
    let records = outcome.records();
    assert_eq!(kinds(&records), ["", "memory_limit", ""]);
    let message = &records[1].result.as_ref().expect_err("it failed").message;
    assert!(message.contains("--total-memory"), "{message}");
}

#[test]
fn rows_for_which_there_is_no_memory_are_an_instances_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "fn main(x: f32[n]) -> f32[n, 1000, 100] { ones([n, 1000, 100]) * 2.0 }\n";
    let path = program(&folder, text);
    let many = vec!["1"; 500].join(", ");
    let input = format!("{{\"x\": []}}\n{{\"x\": [{many}]}}\n{{\"x\": []}}\n");
    for limit in ["1G", "100M"] {
        let run = BatchRun::new(&path).args(&["--total-memory", "100M", "--max-memory", limit]);
        let outcome = run.run(&input).expect_code(1);
        assert_eq!(kinds(&outcome.records()), ["", "memory_limit", ""]);
    }
}

/// The running sums of so many numbers of a known length take memory for each pair of them.
#[test]
fn scratch_for_which_there_is_no_memory_is_an_instances_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "fn main(k: i32) -> f32 {
          let x = f32(iota([500000], 0) % 7) + f32(k);
          if k > 0 { sum(cumsum(x, axis = 0)) } else { sum(x) }
        }\n";
    let path = program(&folder, text);
    let input = "{\"k\": 0}\n{\"k\": 1}\n{\"k\": 0}\n";
    for threads in ["1", "2"] {
        let outcome = BatchRun::new(&path)
            .args(&["--threads", threads])
            .run(input);
        let records = outcome.expect_code(1).records();
        assert_eq!(kinds(&records), ["", "memory_limit", ""]);
        let message = &records[1].result.as_ref().expect_err("it failed").message;
        assert!(message.contains("--total-memory"), "{message}");
    }
}

#[test]
fn an_instance_that_takes_too_long_fails_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A queue of launches, a loop that tensors never end, and both.
    for (text, arguments) in [
        (
            "fn main(n: i32) -> f32[64] {\n  fold(range(n), ones([64]), |s, i| \
             tanh(tanh(tanh(s @ ones([64, 64])) @ ones([64, 64])) @ ones([64, 64])))\n}\n",
            &[][..],
        ),
        (
            "fn main(n: i32) -> f32[2] {\n  while sum(a) > 0.5 with (a = ones([2]) * f32(n - 2)) \
             { a * 0.99999 + 0.00001 }\n}\n",
            &[],
        ),
        (
            "fn main(n: i32) -> f32[2] {\n  while sum(a) > 0.5 with (a = ones([2]) * f32(n - 2)) \
             { a * 0.99999 + 0.00001 }\n}\n",
            &["--in-flight", "2"],
        ),
    ] {
        let path = program(&folder, text);
        let input = "{\"n\": 2}\n{\"n\": 2000000}\n{\"n\": 1}\n{\"n\": 0}\n";
        let begin = Instant::now();
        let run = BatchRun::new(&path)
            .args(&["--max-seconds", "1", "--total-memory", "16G"])
            .args(arguments);
        let outcome = run.run(input).expect_code(1);
        assert_eq!(
            kinds(&outcome.records()),
            ["", "time_limit", "", ""],
            "{text}"
        );
        // In time, but for starting, compiling, and a machine that has other work.
        assert!(begin.elapsed() < Duration::from_secs(30), "{text}");
    }
}

/// One call of one kernel: nothing but the kernel itself can see that it takes too long. (Products of
/// matrices of one number are too quick for this.)
#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for body in [
        "sum(a @ a)",
        "sum(a @ a @ a, axis = 0)[0]",
        "sum(softmax(a @ a) @ a, axis = 1)[n - 1]",
    ] {
        let path = program(
            &folder,
            &format!(
                "fn main(n: i32) -> f32 {{ let a = f32(iota([n, n], 0) + iota([n, n], 1)); {body} }}\n"
            ),
        );
        let input = "{\"n\": 2}\n{\"n\": 9000}\n{\"n\": 1}\n{\"n\": 100}\n";
        let begin = Instant::now();
        let run = BatchRun::new(&path)
            .args(&["--max-seconds", "2", "--total-memory", "16G"])
            .args(&["--max-memory", "8G"]);
        let outcome = run.run(input).expect_code(1);
        assert_eq!(
            kinds(&outcome.records()),
            ["", "time_limit", "", ""],
            "{body}"
        );
        // In time, but for starting, compiling, and a machine that has other work.
        assert!(begin.elapsed() < Duration::from_secs(30), "{body}");
    }
}

/// Those beside an instance that takes too long have the results that they have without it, and it ends
/// when its own time is over, however many are beside it and whether or not tensors decide.
#[test]
fn neighbours_of_one_that_takes_too_long_lose_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let declarations = "type Tree = Leaf | Node(Tree, Tree)\n\
         fn up(t: Tree) -> f32[3] {\n  match t { Leaf => ones([3]), Node(l, r) => tanh(up(l) * 0.5 + up(r)) }\n}\n";
    let line = |n: usize| {
        let tree = (0..n % 5).fold("\"Leaf\"".to_owned(), |tree, _| {
            format!("{{\"Node\": [\"Leaf\", {tree}]}}")
        });
        format!("{{\"id\": {n}, \"n\": {n}, \"t\": {tree}}}\n")
    };
    for body in ["s", "if s > 10.0 { s * 2.0 } else { s }"] {
        let text = format!(
            "{declarations}fn main(n: i32, t: Tree) -> f32 {{\n  let a = f32(iota([n, n], 0) + iota([n, n], 1));\n  \
             let s = sum(a @ a) + sum(up(t));\n  {body}\n}}\n"
        );
        let path = program(&folder, &text);
        let mut lines: Vec<String> = (0..40).map(line).collect();
        let begin = Instant::now();
        let alone = BatchRun::new(&path).run(&lines.concat()).expect_code(0);
        let without = begin.elapsed();
        lines.insert(17, line(12_000));
        for way in [&[][..], &["--in-flight", "8"], &["--threads", "2"]] {
            let begin = Instant::now();
            let run = BatchRun::new(&path)
                .args(&["--max-seconds", "3", "--total-memory", "16G"])
                .args(&["--max-memory", "8G"])
                .args(way);
            let outcome = run.run(&lines.concat()).expect_code(1);
            let took = begin.elapsed();
            let mut found = outcome.lines();
            let late = found.remove(17);
            assert!(late.contains("time_limit"), "{late}");
            assert_eq!(found, alone.lines(), "{body} {way:?}");
            // Tried again by halves it took six times its limit.
            assert!(
                took < 4 * without + Duration::from_secs(8),
                "{took:?} {way:?}"
            );
        }
    }
}

/// However little there is: an instance is told what it may have, and nobody waits for memory that never comes.
#[test]
fn the_least_of_memory_is_a_limit_too() {
    let text = "dim D\nparam w: f32[D, D]\nfn main(xs: [f32[D]]) -> f32[D] { fold(xs, zeros([D]), |h, x| tanh((h + x) @ w)) }";
    let model = Model::from_text(text, &[("D", 4)], &mut Rng::new(3));
    for total in ["0", "1", "3", "64"] {
        for way in [
            &[][..],
            &["--batch", "1"],
            &["--no-batch"],
            &["--threads", "2"],
        ] {
            let call = model.batch_run().args(&["--total-memory", total]).args(way);
            let outcome = call.run("{\"xs\":[[1,2,3,4],[0,1,0,1]]}\n").expect_code(1);
            assert!(
                outcome.output.contains("memory_limit"),
                "{}",
                outcome.describe()
            );
        }
    }
}

/// Also by the oracle, which has the same limit, and time and memory for no such tensor.
#[test]
fn a_length_of_more_than_there_is_memory_for_is_refused() {
    let text = "fn main(k: i32) -> (f32[_], [i32]) { (zeros([k]), range(k)) }";
    let model = Model::from_text(text, &[], &mut Rng::new(4));
    for run in [model.batch_run(), model.batch_run().arg("--oracle")] {
        let input = "{\"k\":2147483647}\n{\"k\":1}\n";
        let outcome = run.clone().run(input).expect_code(1);
        assert!(
            outcome.output.contains("memory_limit"),
            "{}",
            outcome.describe()
        );
        assert!(
            outcome.output.contains("[[0.0],[0]]") || outcome.output.contains("[[0.0], [0]]"),
            "{}",
            outcome.describe()
        );
        let small = run.arg("--max-memory").arg("1M");
        let outcome = small.run("{\"k\":1000000}\n").expect_code(1);
        assert!(
            outcome.output.contains("memory_limit"),
            "{}",
            outcome.describe()
        );
    }
}

#[test]
fn a_length_that_is_none_is_told() {
    let text = "fn main(k: i32) -> f32[_] { zeros([k]) }";
    let model = Model::from_text(text, &[], &mut Rng::new(3));
    let outcome = model.batch_run().run("{\"k\":-1}\n").expect_code(1);
    let message = "a length of -1, which is not between 0 and 2147483647";
    assert!(outcome.output.contains(message), "{}", outcome.describe());
}
