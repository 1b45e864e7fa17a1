//! `batch-train`: whole trainings of small programs, ended and gone on with.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cohort_e2e::tools::{Outcome, run, tool};
use cohort_oracle::{Data, read_weights};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// A table, a matrix, and dropout, so that rows, draws and all parts of a checkpoint count.
const PROGRAM: &str = "dim V, D, C
    param emb: f32[V, D]  param w: f32[D, C]  param b: f32[C]  param idle: f32[D]
    fn scores(x: f32[D]) -> f32[C] { tanh(x) @ w + b }
    fn main(words: [i32]) -> i32 { argmax(scores(sum(map(words, |k| emb[k])))) }
    fn loss(words: [i32], class: i32) -> (f32, bool) {
        let y = scores(dropout(sum(map(words, |k| emb[k])), 0.2, 1));
        (cross_entropy(y, class), argmax(y) == class)
    }
    fn measured(words: [i32], class: i32) -> (f32, bool, (i32, i32)) {
        let y = scores(sum(map(words, |k| emb[k])));
        let right = argmax(y) == class;
        (cross_entropy(y, class), right, if class == 0 { (if right { 1 } else { 0 }, 1) } else { (0, 0) })
    }";

struct Files {
    folder: TempDir,
}

impl Files {
    /// The class of an instance is that of its word that is not 0.
    fn new(count: usize) -> Files {
        let files = Files {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        let line = |k: usize| {
            let words = [0, 1 + k % 6, 0];
            json!({"id": format!("s{k}"), "words": words[..2 + k % 2], "class": k % 3}).to_string()
        };
        let lines: Vec<String> = (0..count).map(line).collect();
        files.write("model.coh", PROGRAM);
        files.write("train.jsonl", &lines.join("\n"));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the temporary folder is writable");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("the file was written")
    }

    /// The arguments, files by their names.
    fn arguments(&self, text: &str) -> Vec<std::ffi::OsString> {
        let common = "--oracle --dim V=7 --dim D=4 --dim C=3 --batch 8 --rate 0.05 --seed 3";
        let is_file =
            |word: &&str| word.contains('.') && word.contains(|c: char| c.is_alphabetic());
        let of = |word: &str| match Some(word)
            .filter(|word| is_file(word) && !word.contains(['=', ':']))
        {
            Some(file) => self.path(file).into_os_string(),
            None => word.into(),
        };
        let words = ["model.coh", "--input", "train.jsonl"].into_iter();
        words
            .chain(common.split(' '))
            .chain(text.split_whitespace())
            .map(of)
            .collect()
    }

    fn train(&self, text: &str) -> Outcome {
        run("batch-train", &self.arguments(text), "")
    }

    /// By compiled gradients.
    fn train_compiled(&self, text: &str) -> Outcome {
        let mut arguments = self.arguments(text);
        arguments.retain(|argument| argument != "--oracle");
        run("batch-train", &arguments, "")
    }
}

/// Tells the data apart, and everything that bits depend on is in use.
const ALL: &str = "--dev train.jsonl --dev-entry measured --metrics accuracy,zeros --best accuracy \
    --optimiser adamw --decay 0.01 --clip 1 --schedule inverse-sqrt --warmup 3 \
    --group emb:rate=0.1,decay=0,optimiser=adagrad --init emb=normal(0.1)";

/// Compiled gradients are rounded otherwise, and go on to the same bits where a training is ended.
#[test]
fn compiled_gradients_train_as_the_oracles_do() {
    let files = Files::new(60);
    let losses = |name: &str| -> Vec<f64> {
        let log = String::from_utf8(files.read(name)).expect("text");
        log.lines()
            .map(|line| serde_json::from_str::<Json>(line).expect("JSON"))
            .filter_map(|line| line["train"]["loss"].as_f64())
            .collect()
    };
    let oracle = format!("{ALL} --epochs 4 --output o.safetensors --log oracle.jsonl");
    files.train(&oracle).expect_code(0);
    let whole = format!("{ALL} --epochs 4 --output w.safetensors --log log.jsonl");
    files.train_compiled(&whole).expect_code(0);
    let (expected, given) = (losses("oracle.jsonl"), losses("log.jsonl"));
    assert_eq!(given.len(), 4);
    for (expected, given) in expected.iter().zip(&given) {
        assert!((expected - given).abs() < 1e-3, "{expected} and {given}");
    }
    for epochs in ["2", "4 --resume"] {
        let part = format!("{ALL} --epochs {epochs} --output p.safetensors --checkpoint c.bin");
        files.train_compiled(&part).expect_code(0);
    }
    assert!(files.read("w.safetensors") == files.read("p.safetensors"));
}

#[test]
fn a_training_learns_and_writes_all_that_is_asked_for() {
    let files = Files::new(60);
    let outcome = files.train(&format!(
        "{ALL} --epochs 12 --output w.safetensors --log log.jsonl --plot p.svg"
    ));
    let outcome = outcome.expect_code(0).expect_message(&[
        "the gradient of the parameter `idle` was zero in all of the first epoch",
        "epoch 12: loss",
        "dev loss",
        "zeros 1.0000",
    ]);
    assert_eq!(outcome.stderr.matches("`idle`").count(), 1);
    let log = String::from_utf8(files.read("log.jsonl")).expect("text");
    let lines: Vec<Json> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[11]["dev"]["accuracy"], 1.0);
    assert_eq!(lines[11]["step"], 12 * 8);
    assert!(
        String::from_utf8(files.read("p.svg"))
            .expect("text")
            .contains("accuracy")
    );

    // What was trained is what `batch-run` runs.
    let weights = files.path("w.safetensors");
    let run = cohort_e2e::BatchRun::new(&files.path("model.coh")).weights(&weights);
    let found = run
        .run("{\"words\":[4,0]}\n{\"words\":[0,5]}\n{\"words\":[6]}")
        .expect_code(0);
    let expected = [0, 1, 2].map(|class| format!("{{\"id\": {}, \"output\": {class}}}", class + 1));
    assert_eq!(found.lines(), expected);
}

#[test]
fn four_epochs_are_two_and_two_to_the_bit() {
    let files = Files::new(50);
    files
        .train(&format!(
            "{ALL} --epochs 4 --output whole.safetensors --checkpoint whole.ck"
        ))
        .expect_code(0);
    files
        .train(&format!(
            "{ALL} --epochs 2 --checkpoint parts.ck --log l.jsonl"
        ))
        .expect_code(0);
    let rest = "--epochs 4 --output parts.safetensors --checkpoint parts.ck --log l.jsonl --resume";
    files.train(&format!("{ALL} {rest}")).expect_code(0);
    assert_eq!(
        files.read("whole.safetensors"),
        files.read("parts.safetensors")
    );
    assert_eq!(files.read("whole.ck"), files.read("parts.ck"));
    assert_eq!(
        String::from_utf8(files.read("l.jsonl"))
            .expect("text")
            .lines()
            .count(),
        4
    );
    // All is done.
    files
        .train(&format!("{ALL} --epochs 4 --resume parts.ck"))
        .expect_code(0);
    assert_eq!(files.read("whole.ck"), files.read("parts.ck"));
}

#[test]
fn a_signal_keeps_the_state_and_what_comes_is_the_same() {
    let files = Files::new(300);
    files
        .train(&format!("{ALL} --epochs 30 --output whole.safetensors"))
        .expect_code(0);
    let arguments = files.arguments(&format!(
        "{ALL} --epochs 30 --output w.safetensors --checkpoint c.ck"
    ));
    let mut child = Command::new(tool("batch-train"))
        .args(&arguments)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    let begin = Instant::now();
    while !files.path("c.ck").exists() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    let killed = Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .expect("kill runs");
    assert!(killed.success());
    let status = child.wait().expect("the tool ends");
    assert_eq!(status.code(), Some(143));
    assert!(!files.path("w.safetensors").exists(), "it is not done");
    let rest = "--epochs 30 --output w.safetensors --checkpoint c.ck --resume";
    files.train(&format!("{ALL} {rest}")).expect_code(0);
    assert_eq!(files.read("w.safetensors"), files.read("whole.safetensors"));
}

#[test]
fn instances_that_fail_are_named_and_left_out() {
    let files = Files::new(20);
    let mut text = String::from_utf8(files.read("train.jsonl")).expect("text");
    text += "\n{\"id\":\"far\",\"words\":[70],\"class\":0}\nnothing\n{\"id\":\"class\",\"words\":[1],\"class\":9}\n";
    files.write("train.jsonl", &text);
    let outcome = files
        .train("--epochs 1 --output w.safetensors")
        .expect_code(1);
    outcome.expect_message(&[
        "instance \"far\" is left out: index_out_of_range",
        "instance \"class\" is left out: index_out_of_range",
        "train.jsonl:22: the line is not an instance",
    ]);
    assert!(files.path("w.safetensors").exists());
    let outcome = files
        .train("--epochs 1 --output v.safetensors --stop-on-failure")
        .expect_code(1);
    outcome.expect_message(&["train.jsonl:22"]);
    assert!(!files.path("v.safetensors").exists());
}

#[test]
fn an_epoch_in_which_no_development_instance_has_a_score_is_not_the_best() {
    let files = Files::new(9);
    files.write("far.jsonl", "{\"words\":[70],\"class\":0}\n");
    let outcome = files
        .train("--dev far.jsonl --metrics right --best right --epochs 2 --output w.safetensors");
    outcome.expect_code(1).expect_message(&["epoch 2: loss"]);
}

/// An array of two elements is no pair, whatever an output looks like.
#[test]
fn metrics_are_told_by_their_types() {
    let files = Files::new(30);
    let measure = |program: &str, log: &str| {
        files.write("model.coh", program);
        let arguments = format!("--epochs 1 --metrics right --output w.safetensors --log {log}");
        files.train(&arguments).expect_code(0);
        let line: Json = serde_json::from_slice(&files.read(log)).expect("a line");
        line["train"].clone()
    };
    let with_words = PROGRAM
        .replace(
            "class: i32) -> (f32, bool) {",
            "class: i32) -> (f32, [i32], str, bool) {",
        )
        .replace(
            "class), argmax(y) == class)",
            "class), words, \"NaN\", argmax(y) == class)",
        );
    assert_eq!(measure(&with_words, "a.jsonl"), measure(PROGRAM, "b.jsonl"));
}

#[test]
fn mistakes_are_refused_before_anything_is_written() {
    let files = Files::new(9);
    for (arguments, messages) in [
        ("--epochs 1", &["--output", "--checkpoint"][..]),
        (
            "--output w.safetensors --resume",
            &["`--resume` needs a checkpoint"],
        ),
        (
            "--output w.safetensors --resume no.ck",
            &["cannot read", "no.ck"],
        ),
        (
            "--output w.safetensors --group em:rate=1",
            &["no parameter has such a name", "emb, w, b"],
        ),
        (
            "--output w.safetensors --init em=zeros",
            &["no parameter has such a name"],
        ),
        ("--output w.safetensors --init emb=xaver", &["xavier"]),
        ("--output w.safetensors --schedule cosin", &["cosine"]),
        ("--output w.safetensors --entry main", &["E0211"]),
        (
            "--output w.safetensors --entry lost",
            &["the program has no `lost`"],
        ),
        ("--output train.jsonl", &["would overwrite"]),
        ("--output w.safetensors --patience 3", &["--dev"]),
        (
            "--output w.safetensors --group *:frozen",
            &["nothing is trained"],
        ),
        (
            "--output w.safetensors --checkpoint no/c.ck",
            &["cannot write", "c.ck`: there is no folder `"],
        ),
        (
            "--output no/w.safetensors",
            &["cannot write", "w.safetensors`: there is no folder `"],
        ),
        (
            "--output w.safetensors --plot no/p.svg",
            &["cannot write", "p.svg`: there is no folder `"],
        ),
        ("--output w.safetensors --momentum -1", &["a number from 0"]),
        (
            "--output w.safetensors --clip 0",
            &["a number above 0", "trains nothing"],
        ),
        (
            "--output w.safetensors --group emb:optimiser=best",
            &["there is no optimiser `best`"],
        ),
        (
            "--output w.safetensors --metrics right,far",
            &["`far` is one name too many: `loss` returns 1 metric"],
        ),
        (
            "--output w.safetensors --dev train.jsonl --dev-entry measured --metrics a,a",
            &["two metrics are called `a`"],
        ),
        (
            "--output w.safetensors --dev train.jsonl --metrics right --best wrong",
            &["there is no such metric; there are loss, right"],
        ),
        (
            "--output w.safetensors --metrics failed",
            &["`failed` is not a metric's"],
        ),
        (
            "--output w.safetensors --momentum 0.9",
            &["`--momentum` is of `--optimiser sgd`"],
        ),
    ] {
        files
            .train(arguments)
            .expect_code(2)
            .expect_message(messages);
        assert!(!files.path("w.safetensors").exists());
    }
    for rate in ["-1", "0"] {
        let mut words = files.arguments("--output w.safetensors");
        let own = words.iter().position(|word| word == "0.05");
        words[own.expect("it is given")] = rate.into();
        run("batch-train", &words, "")
            .expect_code(2)
            .expect_message(&["--rate", "a number above 0"]);
    }
    let large = files.arguments("--output w.safetensors");
    let large = large.into_iter().map(|word| match word.to_str() {
        Some("V=7") => "V=500000".into(),
        Some("D=4") => "D=500000".into(),
        _ => word,
    });
    let large: Vec<_> = large.collect();
    run("batch-train", &large, "")
        .expect_code(2)
        .expect_message(&["MB of memory"]);
    files.write("none.jsonl", "\n");
    files
        .train("--dev none.jsonl --output w.safetensors")
        .expect_code(2)
        .expect_message(&["has no instance"]);

    files.train("--epochs 1 --checkpoint c.ck").expect_code(0);
    let kept = files.read("c.ck");
    let other = files
        .train("--epochs 2 --clip 2 --decay 0.5 --resume c.ck")
        .expect_code(2);
    other.expect_message(&[
        "--clip: expected 2, found none",
        "--decay: expected 0.5, found 0",
    ]);
    files.write("model.coh", &PROGRAM.replace("0.2", "0.3"));
    let other = files.train("--epochs 2 --resume c.ck").expect_code(2);
    other.expect_message(&["the program: expected"]);
    assert_eq!(files.read("c.ck"), kept);
}

#[test]
fn a_full_disk_leaves_the_checkpoint_before() {
    let files = Files::new(9);
    files.train("--epochs 1 --checkpoint c.ck").expect_code(0);
    let kept = files.read("c.ck");
    // What is written may have 512 bytes.
    let limited = Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(tool("batch-train"))
        .args(files.arguments("--epochs 2 --checkpoint c.ck --resume"))
        .output()
        .expect("the tool starts");
    let message = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(2), "{message}");
    assert!(
        message.contains("the one that was there before stays"),
        "{message}"
    );
    assert_eq!(files.read("c.ck"), kept);
    let left = fs::read_dir(files.folder.path())
        .expect("the folder")
        .count();
    assert_eq!(left, 3, "the program, the data and the checkpoint");
}

#[test]
fn parameters_begin_by_file_and_by_rule() {
    let files = Files::new(9);
    let begin = |arguments: &str| {
        let outcome = files.train(&format!("--epochs 0 --output w.safetensors {arguments}"));
        outcome.expect_code(0);
        read_weights(&files.path("w.safetensors")).expect("the weights can be read")
    };
    let first = begin("--init *=normal(1) --init w=ones");
    assert_eq!(first["w"].data, Data::F32(vec![1.0; 12]));
    let second = begin("--init *=normal(1) --init b=constant(-2.5)");
    assert_eq!(second["b"].data, Data::F32(vec![-2.5; 3]));
    assert_eq!(
        second["emb"].data, first["emb"].data,
        "the others are what they were"
    );
    assert_ne!(second["w"].data, first["w"].data);

    // Pretrained vectors as a table: the others begin by rule.
    let emb = first.iter().filter(|(name, _)| *name == "emb");
    let emb = emb
        .map(|(name, tensor)| (name.clone(), tensor.clone()))
        .collect();
    cohort_e2e::weights::write_weights(&files.path("emb.safetensors"), &emb);
    let third = begin("--weights emb.safetensors --init emb=zeros --init w=zeros");
    assert_eq!(third["emb"].data, first["emb"].data, "the file comes first");
    assert_eq!(third["w"].data, Data::F32(vec![0.0; 12]));
}
