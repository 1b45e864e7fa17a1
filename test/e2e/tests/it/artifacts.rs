//! Artifacts: the same bits as the program they were made of, and a refusal where they cannot run.

use std::fs;

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::tools::run;
use cohort_e2e::{BatchRun, Model, Rng};

use crate::models::{MODELS, model_case, to_text};

#[test]
fn artifacts_give_the_bits_of_their_programs() {
    for case in MODELS {
        let mut rng = Rng::new(53);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, 12, &mut rng));
        let expected = model.batch_run().run(&input).expect_code(0);
        let compiled = model.compile(&[]);
        for way in [
            &[][..],
            &["--batch", "5", "--threads", "2"],
            &["--no-batch"],
            &["--scheduler", "agenda", "--in-flight", "3"],
            &[
                "--granularity",
                "instance",
                "--without",
                "sharing,gather-fusion",
            ],
        ] {
            let found = compiled.batch_run().args(way).run(&input).expect_code(0);
            assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
        }
    }
}

#[test]
fn what_the_compiler_is_told_is_in_the_artifact() {
    let case = model_case("treelstm");
    let mut rng = Rng::new(54);
    let model = case.shipped();
    let input = to_text(&case.instances(&model, 9, &mut rng));
    for way in [
        &["--granularity", "operator"][..],
        &["--without", "hoist-operators"],
        &["--target-cpu", "x86-64-v3"],
    ] {
        let compiled = model.compile(way);
        let found = compiled.batch_run().run(&input).expect_code(0);
        let told = match way[0] {
            // What it is compiled for changes no bit.
            "--target-cpu" => model.batch_run(),
            _ => model.batch_run().args(way),
        };
        let expected = told.run(&input).expect_code(0);
        assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
    }
}

/// Processors without fused multiply-adds round more often: bits of their own, and the same for every batch.
#[test]
fn processors_without_multiply_adds_have_bits_of_their_own() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for name in ["treelstm", "encoder", "act"] {
        let case = model_case(name);
        let mut rng = Rng::new(57);
        let model = case.shipped();
        let input = to_text(&case.instances(&model, 9, &mut rng));
        let fused = model.batch_run().run(&input).expect_code(0).lines();
        let older = model.compile(&["--target-cpu", "x86-64-v2"]);
        let oldest = model.compile(&["--target-cpu", "x86-64"]);
        let separate = older.batch_run().run(&input).expect_code(0).lines();
        compare_records(&fused, &separate, Closeness::WholeOutput(1e-5)).unwrap();
        assert_ne!(fused, separate, "{name}");
        for (compiled, way) in [(&older, ["--batch", "1"]), (&oldest, ["--batch", "4"])] {
            let found = compiled.batch_run().args(&way).run(&input).expect_code(0);
            assert_eq!(separate, found.lines(), "{name}: {}", found.describe());
        }
    }
}

/// Where a processor cannot round a number to an integer, the runtime does.
#[test]
fn the_oldest_processors_have_functions_for_what_they_have_no_instruction_for() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let text = "fn main(x: f32[n], y: f32) -> (f32[n], f32[n], f32) {
      (sin(x), pow(x, x + 1.5), cos(y))
    }";
    let model = Model::from_text(text, &[], &mut Rng::new(58));
    let input = "{\"x\":[0.5,-1.5,2.5,100,-0.0],\"y\":3}\n";
    let compiled = |cpu| {
        let artifact = model.compile(&["--target-cpu", cpu]);
        artifact.batch_run().run(input).expect_code(0).lines()
    };
    assert_eq!(compiled("x86-64"), compiled("x86-64-v2"));
}

#[test]
fn what_is_for_the_compiler_is_refused_with_an_artifact() {
    let model = model_case("treelstm").shipped();
    let compiled = model.compile(&[]);
    for option in [
        &["--dim", "H=4"][..],
        &["--granularity", "block"],
        &["--without", "sharing,hoist-operators"],
    ] {
        compiled
            .batch_run()
            .args(option)
            .run("")
            .expect_code(2)
            .expect_message(&[option[0], "is compiled already", "batch-opt"]);
    }
    compiled
        .batch_run()
        .arg("--oracle")
        .run("")
        .expect_code(2)
        .expect_message(&["--oracle"]);
}

#[test]
fn weights_are_checked_by_name_shape_and_type() {
    let model = model_case("treelstm").shipped();
    let compiled = model.compile(&[]);
    let other = model_case("treegru").shipped();
    BatchRun::new(&compiled.artifact)
        .weights(&other.weights_path)
        .run("")
        .expect_code(2)
        .expect_message(&["the weights do not fit", "`wx`", "expected f32["]);
}

#[test]
fn a_bad_artifact_is_refused_with_the_reason() {
    let model = model_case("treelstm").shipped();
    let compiled = model.compile(&[]);
    let artifact = &compiled.artifact;
    let good = fs::read(artifact).expect("the artifact was written");
    let check = |bytes: &[u8], words: &[&str]| {
        fs::write(artifact, bytes).expect("the temporary folder is writable");
        compiled
            .batch_run()
            .run("")
            .expect_code(2)
            .expect_message(&[&["model.cohort", "expected", "found"], words].concat());
    };
    for length in [0, 1, 8, 30, 64, 500, good.len() / 2, good.len() - 1] {
        let words = if length == 0 {
            "is not an artifact"
        } else {
            "is damaged"
        };
        check(&good[..length], &[words]);
    }
    let mut rng = Rng::new(55);
    for _ in 0..20 {
        let mut changed = good.clone();
        let at = rng.below(changed.len());
        changed[at] ^= 1 << rng.below(8);
        check(&changed, &[]);
    }
    check(b"fn main(n: i32) -> i32 { n }", &["is not an artifact"]);
    check(&good[1..], &["is not an artifact"]);
}

#[test]
fn a_processor_that_is_not_known_is_refused() {
    let model = model_case("treelstm").shipped();
    let arguments = [
        model.source.clone().into(),
        "--weights".into(),
        model.weights_path.clone().into(),
        "--emit=artifact".into(),
        "--target-cpu=z80".into(),
    ];
    run("batch-opt", &arguments, "")
        .expect_code(2)
        .expect_message(&["--target-cpu z80", "native"]);
}
