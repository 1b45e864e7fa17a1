//! The models on the simulated GPU, which runs the very kernels that a GPU would.

use std::ffi::OsString;
use std::path::Path;

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::tools::run;
use cohort_e2e::{BatchRun, Model, Outcome, Rng};

use serde_json::{Value as Json, json};

use crate::models::{MODELS, model_case, to_text};

/// How far f32 may be from f64, of the largest number of an instance's output.
const CLOSENESS: Closeness = Closeness::WholeOutput(1e-4);

/// Compiles a model to an artifact with code for these devices.
fn emit(model: &Model, artifact: &Path, codes: &[&str]) -> Outcome {
    let mut arguments: Vec<OsString> = vec![
        model.source.clone().into(),
        "--weights".into(),
        model.weights_path.clone().into(),
        "--emit=artifact".into(),
        "-o".into(),
        artifact.into(),
    ];
    arguments.extend(codes.iter().map(OsString::from));
    run("batch-opt", &arguments, "")
}

#[test]
fn the_simulated_gpu_is_close_to_the_oracle_and_batches_change_no_bit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    for case in MODELS {
        let mut rng = Rng::new(61);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, 10, &mut rng));
        // Compiled once, since that is what takes its time.
        emit(&model, &artifact, &["--gpu-arch=sim"]).expect_code(0);
        let run = |way: &[&str]| {
            let call = BatchRun::new(&artifact).weights(&model.weights_path);
            let call = call.args(&["--device", "gpu-sim"]).args(way);
            call.run(&input).expect_code(0)
        };
        let batched = run(&[]);
        compare_records(&model.oracle_lines(&input), &batched.lines(), CLOSENESS)
            .unwrap_or_else(|message| panic!("{message}\nfrom {}", batched.describe()));
        for way in [
            &["--no-batch"][..],
            &["--batch", "3"],
            &["--in-flight", "4"],
            &["--scheduler", "agenda"],
        ] {
            let other = run(way);
            assert_eq!(batched.lines(), other.lines(), "{}", other.describe());
        }
    }
}

/// Of a recursion and of a loop whose launches follow one another a flush is one launch, of one step it is as many
/// as there are; bits are those of launches one by one, in every precision.
#[test]
fn a_flush_of_several_steps_is_one_launch() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (artifact, path) = (
        folder.path().join("model.cohort"),
        folder.path().join("stats.json"),
    );
    for (name, precision) in [
        ("treelstm", "f32"),
        ("treelstm", "tf32"),
        ("treelstm", "bf16"),
        ("birnn", "f32"),
        ("masked_mha", "f32"),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(64);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, 10, &mut rng));
        let run = |codes: &[&str], way: &[&str]| {
            let codes = [&["--gpu-arch=sim", "--precision", precision], codes].concat();
            emit(&model, &artifact, &codes).expect_code(0);
            let call = BatchRun::new(&artifact).weights(&model.weights_path);
            let call = call.args(&["--device", "gpu-sim"]).args(way);
            let outcome = call.arg("--stats").arg(&path).run(&input).expect_code(0);
            let text = std::fs::read_to_string(&path).expect("statistics");
            let stats: Json = serde_json::from_str(&text).expect("statistics are JSON");
            (outcome.lines(), stats)
        };
        let launches = |stats: &Json| stats["device"]["launches"].as_u64().expect("launches");
        let (expected, plain) = run(&["--without=persistence"], &[]);
        let (found, stats) = run(&[], &[]);
        assert_eq!(found, expected, "{name}, {precision}");
        assert_eq!(Some(launches(&stats)), stats["flushes"].as_u64(), "{name}");
        assert!(launches(&plain) > launches(&stats), "{name}: {plain}");
        // Where each call is timed, it is launched by itself.
        let (found, stats) = run(&[], &["--device-times"]);
        assert_eq!(found, expected, "{name}, {precision}");
        assert_eq!(launches(&stats), launches(&plain), "{name}");
    }
}

/// Two batches are on a device at a time: in the order of the input, with the bits and launches of one after another, and
/// where there is memory for one of them only, that one.
#[test]
fn a_batch_is_recorded_while_another_is_computed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    for name in ["treelstm", "encoder", "dagrnn"] {
        let case = model_case(name);
        let mut rng = Rng::new(68);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let mut input = to_text(&case.instances(&model, 40, &mut rng));
        input.insert_str(0, "{\"id\": \"first\", \"no\": 1}\n");
        input.push_str("{\"id\": \"last\"\n");
        let run = |way: &[&str]| {
            let call = model
                .batch_run()
                .args(&["--device", "gpu-sim", "--batch", "3"]);
            let outcome = call.args(way).arg("--stats").arg(&path).run(&input);
            let outcome = outcome.expect_code(1);
            let text = std::fs::read_to_string(&path).expect("statistics");
            let stats: Json = serde_json::from_str(&text).expect("statistics are JSON");
            (outcome.lines(), stats)
        };
        let (expected, alone) = run(&["--without", "overlap"]);
        assert_eq!(expected.len(), 42, "{name}");
        let most = |stats: &Json| {
            let device = &stats["device"];
            device["peak_memory_bytes"].as_u64().expect("a number")
        };
        let (found, beside) = run(&[]);
        assert_eq!(found, expected, "{name}");
        assert_eq!(beside["flushes"], alone["flushes"], "{name}");
        // Rows of a second batch, at least.
        assert!(most(&beside) > most(&alone), "{name}: {beside}");
        let limit = (most(&alone) + most(&alone) / 4).to_string();
        let (found, short) = run(&["--device-memory", &limit]);
        assert_eq!(found, expected, "{name}");
        assert!(most(&short) <= most(&alone) * 5 / 4, "{name}: {short}");
        for way in [&["--benchmark-repetitions", "3"][..], &["--device-times"]] {
            assert_eq!(run(way).0, expected, "{name}, {way:?}");
        }
    }
}

/// Small instances, then such as have no room on a device beside each other: each has it alone.
#[test]
fn what_has_no_room_beside_another_batch_runs_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    let text = "dim D param w: f32[D, D] fn main(x: f32[n, D]) -> f32[n, D] { tanh(x @ w) }";
    let model = Model::from_text(text, &[("D", 4)], &mut Rng::new(69));
    let instance = |rows: usize| {
        let row = |row: usize| json!([row, 1, 0.5, -1]);
        format!("{}\n", json!({"x": (0..rows).map(row).collect::<Vec<_>>()}))
    };
    let lengths = [[1; 3], [4000, 3999, 1], [4000, 3998, 4000]].concat();
    let input: String = lengths.into_iter().map(instance).collect();
    let run = |way: &[&str]| {
        let call = model
            .batch_run()
            .args(&["--device", "gpu-sim", "--batch", "1"]);
        let outcome = call
            .args(way)
            .arg("--stats")
            .arg(&path)
            .run(&input)
            .expect_code(0);
        let text = std::fs::read_to_string(&path).expect("statistics");
        let stats: Json = serde_json::from_str(&text).expect("statistics are JSON");
        let peak = stats["device"]["peak_memory_bytes"].as_u64();
        (outcome.lines(), peak.expect("a number"))
    };
    let (expected, alone) = run(&["--without", "overlap"]);
    let (found, beside) = run(&[]);
    assert_eq!(found, expected);
    assert!(beside > alone * 3 / 2, "{beside} and {alone}");
    let (found, short) = run(&["--device-memory", &(alone * 5 / 4).to_string()]);
    assert_eq!(found, expected);
    assert!(short <= alone * 5 / 4, "{short} and {alone}");
}

/// Weights of a recursion and of a loop that stay in shared memory for a flush: the bits are those of weights that are read
/// anew, where blocks keep their columns and where they take turns, on both simulators and in every batch.
#[test]
fn weights_that_stay_change_no_bit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    for (name, sizes) in [
        ("treelstm", [28, 32, 16, 5]),
        ("treelstm", [28, 16, 48, 5]),
        ("birnn", [28, 16, 32, 5]),
        ("treefc", [28, 16, 16, 5]),
        // Several sums, several launches of a kernel, and others beside them.
        ("treegru", [28, 16, 48, 5]),
        ("childsum", [28, 32, 16, 5]),
        ("nestedrnn", [28, 16, 32, 5]),
        ("act", [28, 16, 32, 5]),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(66);
        let model = case.with_sizes(sizes, &mut rng);
        let input = to_text(&case.instances(&model, 10, &mut rng));
        let compile = |codes: &[&str]| {
            let codes = [&["--gpu-arch=ptx,sim"], codes].concat();
            emit(&model, &artifact, &codes).expect_code(0);
        };
        let run = |way: &[&str]| {
            let call = BatchRun::new(&artifact).weights(&model.weights_path);
            call.arg("--device").args(way).run(&input).expect_code(0)
        };
        compile(&["--without=hold-weights"]);
        let expected = run(&["gpu-sim"]);
        compile(&[]);
        let bytes = std::fs::read(&artifact).expect("an artifact");
        let resident = bytes.windows(9).any(|bytes| bytes == b"_resident");
        assert!(resident, "{name}: no weights stay");
        for way in [
            &["gpu-sim"][..],
            &["ptx-sim"],
            &["gpu-sim", "--batch", "3"],
            &["ptx-sim", "--batch", "1"],
            &["gpu-sim", "--device-times"],
        ] {
            let found = run(way);
            assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
        }
    }
}

/// Instances that are divided between clusters: trees and loops, equal calls of leaves that instances share, lists of children,
/// decisions, lengths, a kernel with 12 parts of its columns. The bits are those of blocks without clusters, on both simulators
/// and in every batch.
#[test]
fn clusters_change_no_bit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let path = folder.path().join("stats.json");
    for (name, sizes) in [
        ("treelstm", [28, 32, 16, 5]),
        ("treegru", [28, 16, 48, 5]),
        ("childsum", [28, 64, 64, 5]),
        ("dagrnn", [28, 16, 32, 5]),
        ("stackrnn", [28, 16, 32, 5]),
        ("nestedrnn", [28, 16, 32, 5]),
        ("act", [28, 16, 32, 5]),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(67);
        let model = case.with_sizes(sizes, &mut rng);
        let input = to_text(&case.instances(&model, 21, &mut rng));
        let compile = |codes: &[&str]| {
            let codes = [&["--gpu-arch=ptx,compute_90,sim"], codes].concat();
            emit(&model, &artifact, &codes).expect_code(0);
        };
        let run = |way: &[&str]| {
            let call = BatchRun::new(&artifact).weights(&model.weights_path);
            let call = call.arg("--stats").arg(&path).arg("--device").args(way);
            let found = call.run(&input).expect_code(0);
            let text = std::fs::read_to_string(&path).expect("statistics");
            let stats: Json = serde_json::from_str(&text).expect("statistics are JSON");
            let divided = stats["device"]["clusters"]["divided"].as_u64();
            (found, divided.unwrap_or(0))
        };
        compile(&["--without=form-clusters"]);
        let (expected, divided) = run(&["gpu-sim"]);
        assert_eq!(divided, 0, "{name}");
        compile(&[]);
        for (way, is_divided) in [
            (&["gpu-sim"][..], true),
            (&["ptx-sim"], true),
            (&["gpu-sim", "--batch", "3"], true),
            (&["gpu-sim", "--batch", "1"], true),
            (&["gpu-sim", "--device-times"], false),
            (&["gpu-sim", "--without", "schedule-reuse"], true),
            (&["gpu-sim", "--without", "speculation"], true),
        ] {
            let (found, divided) = run(way);
            assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
            assert_eq!(divided > 0, is_divided, "{}", found.describe());
        }
        // Calls that instances share are made anew in each batch.
        let (found, _) = run(&["gpu-sim", "--keep-memory", "0"]);
        assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
    }
}

/// Launches of a kernel that need nothing of each other share steps: fewer than one by one, with the same bits, whether a
/// flush is one launch or not.
#[test]
fn launches_that_need_nothing_of_each_other_share_a_step() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("stats.json");
    for (name, instances) in [
        ("mvrnn", 1),
        ("mvrnn", 61),
        ("encoder", 3),
        ("childsum", 10),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(65);
        let model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, instances, &mut rng));
        let run = |without: &[&str]| {
            let call = BatchRun::new(&model.source).weights(&model.weights_path);
            let call = call.args(&["--device", "gpu-sim"]);
            let call = without
                .iter()
                .fold(call, |call, pass| call.args(&["--without", pass]));
            let outcome = call.arg("--stats").arg(&path).run(&input).expect_code(0);
            let text = std::fs::read_to_string(&path).expect("statistics");
            let stats: Json = serde_json::from_str(&text).expect("statistics are JSON");
            let steps = stats["device"]["steps"].as_u64().expect("steps");
            (outcome.lines(), steps)
        };
        let (expected, apart) = run(&["fuse-launches"]);
        let (found, steps) = run(&[]);
        assert_eq!(found, expected, "{name}");
        assert!(steps < apart, "{name}: {steps} of {apart}");
        let (found, of_launches) = run(&["persistence"]);
        assert_eq!((found, of_launches), (expected, steps), "{name}");
    }
}

/// Rows are copied to shared memory for keys of which there are none: nobody has waited for them when the block goes on
/// to the next kernel.
#[test]
fn copies_that_a_kernel_leaves_do_not_reach_the_next_one() {
    let model = Model::from_text(
        "param p: f32[3, 16]  param q: f32[3, 16]
         fn main(x: f32[n, 3], y: f32[m, 3]) -> (f32[n, 3], f32[n, m]) {
           (attend(x @ p, y @ q, y), (2.0 * x) @ transpose(y))
         }",
        &[],
        &mut Rng::new(66),
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    emit(&model, &artifact, &["--gpu-arch=ptx,sim"]).expect_code(0);
    let mut rng = Rng::new(67);
    let mut rows = |count: usize| -> Vec<[f64; 3]> {
        (0..count)
            .map(|_| [0; 3].map(|_| rng.signed_unit()))
            .collect()
    };
    let sizes = [
        (2, 0),
        (1, 28),
        (28, 7),
        (3, 0),
        (1, 28),
        (2, 28),
        (5, 0),
        (2, 28),
    ];
    let input: String = (sizes.into_iter())
        .map(|(n, m)| format!("{{\"x\": {:?}, \"y\": {:?}}}\n", rows(n), rows(m)))
        .collect();
    for device in ["gpu-sim", "ptx-sim"] {
        let run = |way: &[&str]| {
            let call = BatchRun::new(&artifact).weights(&model.weights_path);
            call.args(&["--device", device])
                .args(way)
                .run(&input)
                .expect_code(0)
        };
        let expected = run(&["--device-times"]).lines();
        for batch in ["3", "5", "8"] {
            assert_eq!(
                run(&["--batch", batch]).lines(),
                expected,
                "{device}, {batch}"
            );
        }
    }
}

/// What does not fit into the memory of a GPU fails alone, with or without decisions.
#[test]
fn memory_of_the_device_that_ends_ends_an_instance() {
    let made = "tanh(ones([k, 64]) * z)";
    let input: String = [3, 100_000, 5, 20_000, 7, 2]
        .iter()
        .map(|k| format!("{{\"k\": {k}, \"y\": {:?}}}\n", [0.25; 64]))
        .collect();
    for text in [
        format!("fn main(k: i32, y: f32[64]) -> f32[_, 64] {{ let z = y + 1.0; {made} }}"),
        format!(
            "fn main(k: i32, y: f32[64]) -> f32[_, 64] {{
               let z = while sum(abs(a)) > 3.0 with (a = y) {{ a * 0.5 }};
               {made}
             }}"
        ),
    ] {
        let model = Model::from_text(&text, &[], &mut Rng::new(92));
        let run = |way: &[&str]| {
            let call = BatchRun::new(&model.source).args(&["--device", "gpu-sim"]);
            call.args(way).run(&input)
        };
        let all = run(&[]).expect_code(0).lines();
        for way in [&[][..], &["--in-flight", "3"], &["--batch", "1"]] {
            let few = run(&[way, &["--device-memory", "3M"]].concat()).expect_code(1);
            for (number, (found, expected)) in few.lines().iter().zip(&all).enumerate() {
                match number {
                    1 | 3 => {
                        assert!(found.contains("memory_limit"), "{found}");
                        assert!(found.contains("--device-memory"), "{found}");
                    }
                    _ => assert_eq!(found, expected, "{way:?}"),
                }
            }
        }
    }
}

/// Products of rounded factors, and what the option does to artifacts: their numbers are those of tensor
/// cores, and no processor runs them in another precision.
#[test]
fn tensor_cores_are_close_to_the_oracle_and_batches_change_no_bit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    for (precision, part) in [("tf32", 2e-3), ("bf16", 2e-2)] {
        for name in ["treelstm", "birnn", "act"] {
            let case = model_case(name);
            let mut rng = Rng::new(63);
            let model = case.with_sizes([28, 13, 33, 5], &mut rng);
            let input = to_text(&case.instances(&model, 10, &mut rng));
            let codes = ["--gpu-arch=sim", "--precision", precision];
            emit(&model, &artifact, &codes).expect_code(0);
            let call = |device: &str, way: &[&str]| {
                let call = BatchRun::new(&artifact).weights(&model.weights_path);
                call.args(&["--device", device]).args(way).run(&input)
            };
            let batched = call("gpu-sim", &[]).expect_code(0);
            let closeness = Closeness::WholeOutput(part);
            compare_records(&model.oracle_lines(&input), &batched.lines(), closeness)
                .unwrap_or_else(|message| panic!("{message}\nfrom {}", batched.describe()));
            let in_f32 = model.batch_run().args(&["--device", "gpu-sim"]).run(&input);
            assert_ne!(batched.lines(), in_f32.expect_code(0).lines(), "{name}");
            for way in [
                &["--no-batch"][..],
                &["--batch", "3"],
                &["--in-flight", "4"],
            ] {
                let other = call("gpu-sim", way).expect_code(0);
                assert_eq!(batched.lines(), other.lines(), "{}", other.describe());
            }
            call("cpu", &[])
                .expect_code(2)
                .expect_message(&["--precision", precision, "gpu-sim"]);
        }
    }
}

#[test]
fn a_kernel_takes_tensors_and_numbers_of_the_host() {
    let mut rng = Rng::new(63);
    let text = "fn main(x: i32[n], y: i32[n], k: i32) -> i32 {
          let a = sum(x);
          match k % 3 { 0 => { a - sum(y) } 1 => { k - sum(y) } _ => { a - len([k, k]) } }
        }";
    let model = Model::from_text(text, &[], &mut rng);
    let lines = (-3..4)
        .map(|k| format!(r#"{{"id": "{k}", "x": [{k}, 2, 3], "y": [4, {k}, 1], "k": {k}}}"#));
    let input = lines.collect::<Vec<_>>().join("\n");
    let run = |device: &str| {
        let run = model.batch_run().args(&["--device", device]);
        run.run(&input).expect_code(0).lines()
    };
    assert_eq!(run("cpu"), run("gpu-sim"));
    compare_records(&model.oracle_lines(&input), &run("cpu"), CLOSENESS)
        .expect("the oracle agrees");
}

#[test]
fn an_artifact_has_the_code_of_the_devices_that_were_named() {
    let case = model_case("treelstm");
    let mut rng = Rng::new(62);
    let model = case.shipped();
    let input = to_text(&case.instances(&model, 9, &mut rng));
    let expected = model
        .batch_run()
        .args(&["--device", "gpu-sim"])
        .run(&input)
        .expect_code(0);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let run_on = |device: &str, more: &[&str]| {
        BatchRun::new(&artifact)
            .weights(&model.weights_path)
            .args(&["--device", device])
            .args(more)
            .run(&input)
    };
    emit(&model, &artifact, &["--gpu-arch=ptx,sim"]).expect_code(0);
    let found = run_on("gpu-sim", &[]).expect_code(0);
    assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
    let other_ways = ["--device-times", "--no-graphs", "--batch", "4"];
    let again = run_on("gpu-sim", &other_ways).expect_code(0);
    assert_eq!(expected.lines(), again.lines(), "{}", again.describe());
    run_on("cpu", &[]).expect_code(0);
    run_on("cpu", &["--no-graphs"])
        .expect_code(2)
        .expect_message(&["`--no-graphs` is for a GPU"]);
    run_on("gpu-sim", &["--device-memory", "1K"])
        .expect_code(2)
        .expect_message(&["simulated GPU", "no memory left", "--device-memory"]);

    emit(&model, &artifact, &[]).expect_code(0);
    run_on("gpu-sim", &[])
        .expect_code(2)
        .expect_message(&["simulated GPU", "no code for GPUs"]);
    run_on("cpu", &[]).expect_code(0);

    emit(&model, &artifact, &["--gpu-arch=sm_10"])
        .expect_code(2)
        .expect_message(&["sm_10", "sm_90"]);
}

#[test]
fn without_a_driver_a_gpu_is_absent_and_all_else_works() {
    let model = model_case("treelstm").shipped();
    let outcome = model.batch_run().args(&["--device", "cuda"]).run("");
    // Where there is a GPU, it runs.
    if outcome.code != 0 {
        outcome
            .expect_code(2)
            .expect_message(&["cannot run on an NVIDIA GPU: ", "driver"]);
    }
}
