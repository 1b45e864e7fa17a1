//! Runs whose input comes slowly, and runs that are ended before they are done.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cohort_e2e::Running;
use tempfile::TempDir;

/// Computes without a tensor, with one, and decides by one.
const PROGRAMS: [&str; 3] = [
    "fn main(n: i32) -> i32 { n + 1 }\n",
    "fn main(n: i32) -> f32[2] { ones([2]) * f32(n) }\n",
    "fn main(n: i32) -> f32[2] { while sum(a) < 9.0 with (a = ones([2]) * f32(n)) { a + 1.0 } }\n",
];

fn program(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("model.coh");
    fs::write(&path, text).expect("the temporary folder is writable");
    path
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text(path: &Path) -> &str {
    path.to_str()
        .expect("the temporary folder has a plain name")
}

#[test]
fn a_line_is_answered_before_the_next_one_comes() {
    for source in PROGRAMS {
        for arguments in [&[][..], &["--in-flight", "4"], &["--no-batch"]] {
            let folder = temporary();
            let mut run = Running::start(&program(&folder, source), arguments);
            for id in ["one", "two"] {
                run.send(&format!("{{\"id\": \"{id}\", "));
                run.send("\"n\": 1}\n");
                assert!(run.line().contains(id), "{source} {arguments:?}");
            }
            // What comes together is answered together, and the last line needs no end.
            run.send("{\"n\": 1}\n{\"n\": 2}\n\n{\"n\": 3}");
            run.line();
            run.line();
            run.close();
            let (code, rest, stderr) = run.end();
            assert_eq!((code, rest.len()), (0, 1), "{stderr}");
        }
    }
}

#[test]
fn an_interrupted_run_leaves_whole_lines() {
    for (signal, expected) in [("-TERM", 143), ("-INT", 130)] {
        let folder = temporary();
        let output = folder.path().join("output");
        fs::write(&output, "before\n").expect("the temporary folder is writable");
        let arguments = ["--output", text(&output), "--stats", "-"];
        let mut run = Running::start(&program(&folder, PROGRAMS[0]), &arguments);
        run.send("{\"n\": 1}\n{\"n\": 2}\n{\"n\":");
        // The lines are in a file that has no name yet.
        let begin = Instant::now();
        while !has_lines(folder.path(), &output, 2) {
            assert!(begin.elapsed() < Duration::from_secs(60), "no line");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(fs::read_to_string(&output).unwrap(), "before\n");
        run.signal(signal);
        let (code, _, stderr) = run.end();
        assert_eq!(code, expected, "{stderr}");
        let lines = fs::read_to_string(&output).unwrap();
        assert_eq!(
            lines,
            "{\"id\": 1, \"output\": 2}\n{\"id\": 2, \"output\": 3}\n"
        );
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "the program and the output");
    }
}

/// Whether some file of a folder other than `except` has `count` lines.
fn has_lines(folder: &Path, except: &Path, count: usize) -> bool {
    let files = fs::read_dir(folder).expect("the folder is there");
    let mut texts = files.flatten().filter(|file| file.path() != except);
    texts.any(|file| {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        text.starts_with("{\"id\"") && text.lines().count() == count
    })
}

#[test]
fn a_run_that_was_interrupted_before_its_first_record_leaves_the_output_alone() {
    let folder = temporary();
    let output = folder.path().join("output");
    fs::write(&output, "before\n").expect("the temporary folder is writable");
    let run = Running::start(
        &program(&folder, PROGRAMS[0]),
        &["--output", text(&output), "--max-run-seconds", "0.5"],
    );
    let (code, _, stderr) = run.end();
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("--max-run-seconds"), "{stderr}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "before\n");
}

#[test]
fn a_run_ends_in_time_whatever_it_does() {
    // The second instance takes hours.
    let source = "fn f(k: i32) -> i32 { if k <= 1 { k } else { f(k - 1) + f(k - 2) } }\n\
                  fn main(n: i32) -> i32 { f(n) }\n";
    let folder = temporary();
    let arguments = ["--max-run-seconds", "3", "--max-steps", "1000000000000000"];
    let begin = Instant::now();
    let mut run = Running::start(&program(&folder, source), &arguments);
    run.send("{\"n\": 10}\n");
    assert!(run.line().contains("55"));
    run.send("{\"n\": 80}\n");
    let (code, _, stderr) = run.end();
    assert_eq!(code, 1, "{stderr}");
    assert!(begin.elapsed() < Duration::from_secs(20));
}
