//! Mistakes that concern the whole run: exit code 2 and a message that says what to mend.

use std::fs;
use std::path::Path;

use cohort_e2e::weights::{Weights, weights_bytes};
use cohort_e2e::{BatchRun, Model, Outcome, Rng};
use cohort_oracle::{Data, Tensor};
use tempfile::TempDir;

use crate::models::model_case;

const INPUT: &str = "{\"id\":\"a\",\"t\":{\"Leaf\":[0]}}\n";

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Runs `treelstm` with other bytes for its weights.
#[track_caller]
fn run_with_bytes(model: &Model, bytes: &[u8], arguments: &[&str]) -> Outcome {
    let folder = temporary();
    let path = folder.path().join("w.safetensors");
    fs::write(&path, bytes).expect("the temporary folder is writable");
    BatchRun::new(&model.source)
        .weights(&path)
        .args(arguments)
        .run(INPUT)
}

/// Runs `treelstm` with a change to its weights.
#[track_caller]
fn run_with_changed(change: impl FnOnce(&mut Weights), arguments: &[&str]) -> Outcome {
    let mut model = model_case("treelstm").shipped();
    change(&mut model.weights);
    run_with_bytes(&model, &weights_bytes(&model.weights), arguments)
}

#[test]
fn the_weights_as_they_were_are_good() {
    run_with_changed(|_| {}, &[]).expect_code(0);
}

#[test]
fn a_missing_tensor_is_named() {
    run_with_changed(|weights| drop(weights.remove("ul")), &[])
        .expect_code(2)
        .expect_message(&["ul"]);
}

#[test]
fn every_missing_tensor_is_named() {
    let remove = |weights: &mut Weights| {
        weights.remove("bo");
        weights.remove("bx");
    };
    run_with_changed(remove, &[])
        .expect_code(2)
        .expect_message(&["bo", "bx"]);
}

#[test]
fn a_tensor_of_another_shape_is_named_with_both_shapes() {
    let widen = |weights: &mut Weights| {
        weights.insert("bo".to_string(), Tensor::f32(&[77], vec![0.0; 77]));
    };
    run_with_changed(widen, &[])
        .expect_code(2)
        .expect_message(&["bo", "77"]);
    let transpose = |weights: &mut Weights| {
        if let Some(tensor) = weights.get_mut("ur") {
            tensor.shape.reverse();
        }
    };
    run_with_changed(transpose, &[])
        .expect_code(2)
        .expect_message(&["ur"]);
    let flatten = |weights: &mut Weights| {
        if let Some(tensor) = weights.get_mut("ur") {
            tensor.shape = vec![tensor.count()];
        }
    };
    run_with_changed(flatten, &[])
        .expect_code(2)
        .expect_message(&["ur"]);
}

#[test]
fn a_tensor_of_another_type_is_named() {
    let retype = |weights: &mut Weights| {
        if let Some(tensor) = weights.get_mut("b") {
            tensor.data = Data::I32(vec![0; tensor.count()]);
        }
    };
    run_with_changed(retype, &[])
        .expect_code(2)
        .expect_message(&["`b`", "i32"]);
}

#[test]
fn an_unused_tensor_is_a_mistake_unless_allowed() {
    let add = |weights: &mut Weights| {
        weights.insert("surplus".to_string(), Tensor::f32(&[1], vec![0.0]));
    };
    run_with_changed(add, &[])
        .expect_code(2)
        .expect_message(&["surplus", "--allow-unused-weights"]);
    run_with_changed(add, &["--allow-unused-weights"]).expect_code(0);
}

#[test]
fn files_that_are_not_safetensors_are_refused() {
    let model = model_case("treelstm").shipped();
    let bytes = fs::read(&model.weights_path).expect("the example has weights");
    for damaged in [
        &[][..],
        b"{}",
        b"not a safetensors file at all",
        &bytes[..7],
        &bytes[..100],
        &bytes[..bytes.len() - 1],
        &bytes[1..],
    ] {
        run_with_bytes(&model, damaged, &[])
            .expect_code(2)
            .expect_message(&["w.safetensors"]);
    }
    let mut endless = bytes.clone();
    endless[..8].fill(0xff);
    run_with_bytes(&model, &endless, &[])
        .expect_code(2)
        .expect_message(&["w.safetensors"]);
}

#[test]
fn files_that_do_not_exist_are_named() {
    let model = model_case("treelstm").shipped();
    let folder = temporary();
    let missing = folder.path().join("missing");
    let output = folder.path().join("output.jsonl");
    let call = |program: &Path, weights: &Path, input: &Path, output: &Path| {
        BatchRun::new(program)
            .weights(weights)
            .arg("--input")
            .arg(input)
            .arg("--output")
            .arg(output)
            .run_as_given("")
            .expect_code(2)
            .expect_message(&["missing"])
    };
    let input = folder.path().join("input.jsonl");
    fs::write(&input, INPUT).expect("the temporary folder is writable");
    call(&missing.join("m.coh"), &model.weights_path, &input, &output);
    call(&model.source, &missing, &input, &output);
    call(&model.source, &model.weights_path, &missing, &output);
    call(
        &model.source,
        &model.weights_path,
        &input,
        &missing.join("output.jsonl"),
    );
}

#[test]
fn an_output_that_cannot_be_written_is_not_success() {
    let full = Path::new("/dev/full");
    // Where the system has no such device, there is nothing to write to in vain.
    if full.exists() {
        let model = model_case("treelstm").shipped();
        let call = model
            .batch_run()
            .args(&["--input", "-"])
            .arg("--output")
            .arg(full);
        call.run_as_given(&INPUT.repeat(1000))
            .expect_code(2)
            .expect_message(&["write"]);
    }
}

#[test]
fn usage_errors_are_told_apart_from_failed_instances() {
    let model = model_case("treelstm").shipped();
    for arguments in [
        &["--no-such-option"][..],
        &["--batch", "0"],
        &["--batch", "many"],
        &["--threads", "-1"],
        &["--device", "abacus"],
        &["--max-depth", "x"],
        // Further than the clock goes.
        &["--max-seconds", "9223372036854775808"],
        &["--max-run-seconds", "1e300"],
    ] {
        let outcome = model.batch_run().args(arguments).run(INPUT).expect_code(2);
        outcome.expect_message(&[arguments[0]]);
    }
    cohort_e2e::tools::run("batch-run", &[], "").expect_code(2);
}

/// Runs a program's text, with the weights of `treelstm`.
#[track_caller]
fn run_program(text: &str) -> Outcome {
    let folder = temporary();
    let path = folder.path().join("broken.coh");
    fs::write(&path, text).expect("the temporary folder is writable");
    let model = model_case("treelstm").shipped();
    BatchRun::new(&path).weights(&model.weights_path).run(INPUT)
}

/// The program of `treelstm` with one piece of its text replaced.
#[track_caller]
fn changed_program(from: &str, to: &str) -> String {
    let source = model_case("treelstm").shipped().source;
    let text = fs::read_to_string(source).expect("the example has a program");
    assert!(text.contains(from), "treelstm.coh has no `{from}`");
    text.replacen(from, to, 1)
}

#[test]
fn a_program_with_a_mistake_is_shown_with_the_place() {
    run_program("fn main(")
        .expect_code(2)
        .expect_message(&["broken.coh", "error"]);
    run_program("").expect_code(2).expect_message(&["main"]);
    let unknown = changed_program("match t", "match tt");
    run_program(&unknown)
        .expect_code(2)
        .expect_message(&["broken.coh", "tt"]);
}

#[test]
fn a_shape_that_does_not_fit_is_shown_with_both_dims() {
    let text = "dim D, H, C\nparam wx: f32[D, H]\nparam wo: f32[H, C]\n\
                fn main(x: f32[D]) -> f32[C] { x @ wo }\n";
    run_program(text)
        .expect_code(2)
        .expect_message(&["broken.coh:4", "D against H"]);
}

#[test]
fn several_mistakes_are_shown_in_one_run() {
    let text = "fn one(x: i32) -> i32 { first }\nfn main(x: i32) -> i32 { second }\n";
    run_program(text)
        .expect_code(2)
        .expect_message(&["first", "second"]);
}

#[test]
fn what_is_read_is_not_overwritten() {
    let model = model_case("treelstm").shipped();
    let folder = temporary();
    let file = |name: &str| folder.path().join(name);
    let (program, weights, input) = (file("m.coh"), file("w.safetensors"), file("x.jsonl"));
    fs::copy(&model.source, &program).expect("the temporary folder is writable");
    fs::copy(&model.weights_path, &weights).expect("the temporary folder is writable");
    fs::write(&input, INPUT).expect("the temporary folder is writable");
    let (link, hard) = (file("link"), file("hard"));
    std::os::unix::fs::symlink(&input, &link).expect("links can be made");
    fs::hard_link(&input, &hard).expect("links can be made");
    let before = |path: &Path| fs::read(path).expect("it is still there");
    for output in [&program, &weights, &input, &link, &hard] {
        for option in ["--output", "--stats"] {
            let kept = before(output);
            let call = BatchRun::new(&program).weights(&weights);
            let call = call.arg("--input").arg(&input).arg(option).arg(output);
            call.run_as_given("")
                .expect_code(2)
                .expect_message(&[option, "overwrite"]);
            assert_eq!(before(output), kept);
        }
    }
    let (output, other) = (file("out"), file("./out"));
    let call = BatchRun::new(&program).weights(&weights).arg("--output");
    let call = call.arg(&output).arg("--stats").arg(&other);
    call.run_as_given(INPUT).expect_code(2);
    assert!(!output.exists());
}

/// An array of NumPy of these lengths, without elements.
fn npy(shape: &str) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = (header.len() as u32).to_le_bytes();
    [b"\x93NUMPY\x02\x00", &length[..], header.as_bytes()].concat()
}

/// A Parquet file whose schema nests one column in this many groups, fewer than 16,384.
fn parquet(groups: usize) -> Vec<u8> {
    let count = groups + 1;
    let mut metadata = vec![0x15, 2, 0x19, 0xfc, count as u8 | 0x80, (count >> 7) as u8];
    for _ in 0..groups {
        // Repetition, name, one child.
        metadata.extend([0x35, 0, 0x18, 1, b'x', 0x15, 2, 0]);
    }
    metadata.extend([0x15, 8, 0x25, 0, 0x18, 1, b'x', 0]);
    metadata.extend([0x16, 0, 0x19, 0x0c, 0]);
    let length = (metadata.len() as u32).to_le_bytes();
    [b"PAR1", &metadata[..], &length, b"PAR1"].concat()
}

#[test]
fn arrays_that_nest_without_end_are_refused() {
    let folder = temporary();
    let source = folder.path().join("sum.coh");
    fs::write(&source, "fn main(x: f32[3]) -> f32 { sum(x) }").expect("a writable folder");
    let deep = npy(&format!("0, {}", "1, ".repeat(100_000)));
    for (name, bytes, told) in [
        ("x.npy", deep, "100001 axes"),
        ("y.npy", npy(&format!("3, {}", "{".repeat(200))), "nests"),
        ("x.parquet", parquet(16_000), "levels"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("a writable folder");
        BatchRun::new(&source)
            .arg("--input")
            .arg(&path)
            .run_as_given("")
            .expect_code(2)
            .expect_message(&[name, told]);
    }
}

/// Libraries panic where offsets in a file are wrong; that is told like other damage.
#[test]
fn a_damaged_arrow_file_is_told_in_one_line() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let text = fs::read_to_string(corpus.join("files.coh")).expect("the corpus");
    let whole = fs::read(corpus.join("stream.arrow")).expect("the corpus");
    let model = Model::from_text(&text, &[], &mut Rng::new(1));
    let compiled = model.compile(&[]);
    let folder = temporary();
    let path = folder.path().join("x.arrow");
    let mut damaged = 0;
    for at in (0..whole.len() - 8).step_by(72) {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        fs::write(&path, bytes).expect("a writable folder");
        let run = compiled.batch_run();
        let outcome = run.arg("--input").arg(&path).run_as_given("");
        assert!(
            (0..=2).contains(&outcome.code),
            "{at}: {}",
            outcome.describe()
        );
        assert!(
            !outcome.stderr.contains("panicked"),
            "{at}: {}",
            outcome.describe()
        );
        damaged += usize::from(outcome.stderr.contains("it is damaged"));
    }
    assert!(damaged > 0, "nothing was damaged so");
}
