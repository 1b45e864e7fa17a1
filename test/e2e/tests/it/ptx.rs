//! The text for a card, interpreted: what the compiler's way down to PTX makes of the kernels, against the same kernels
//! compiled for the host.

use std::collections::BTreeSet;
use std::path::Path;

use cohort_abi::gpu::GpuLaunch;
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{BatchRun, Model, Outcome, Rng, paths};
use cohort_runtime::program::artifact::{Artifact, manifest_mark};

use serde_json::json;

use crate::models::{MODELS, ModelCase, model_case, to_text};

/// Numbers that no tile divides.
const SIZES: [u64; 4] = [28, 13, 33, 5];

/// Examples that need instances of their own, and how many of them are run.
const SHIPPED: [(&str, usize); 3] = [("listops", 2), ("ponder", 3), ("sst", 1)];

/// An artifact with the code of both simulators.
fn compile(model: &Model, precision: &str, artifact: &Path) {
    compile_for(model, precision, "--gpu-arch=ptx,sim", artifact);
}

fn compile_for(model: &Model, precision: &str, architectures: &str, artifact: &Path) {
    let arguments = [
        model.source.as_os_str(),
        "--weights".as_ref(),
        model.weights_path.as_os_str(),
        "--emit=artifact".as_ref(),
        architectures.as_ref(),
        "--precision".as_ref(),
        precision.as_ref(),
        "-o".as_ref(),
        artifact.as_os_str(),
    ];
    let arguments: Vec<_> = arguments
        .iter()
        .map(|argument| argument.to_os_string())
        .collect();
    cohort_e2e::tools::run("batch-opt", &arguments, "").expect_code(0);
}

fn run(model: &Model, artifact: &Path, way: &[&str], input: &str) -> Outcome {
    let call = BatchRun::new(artifact).weights(&model.weights_path);
    call.arg("--device").args(way).run(input)
}

fn model_of(case: &ModelCase) -> (Model, String) {
    let mut rng = Rng::new(65);
    let model = case.with_sizes(SIZES, &mut rng);
    let input = to_text(&case.instances(&model, 4, &mut rng));
    (model, input)
}

/// An example with its own weights and the first of its instances.
fn shipped((name, count): (&'static str, usize)) -> (Model, String) {
    let golden = &paths::goldens(name)[0];
    let model = Model::with_weights_file(&paths::model_source(name), &golden.weights);
    let input = std::fs::read_to_string(&golden.input).expect("instances");
    let lines = input.split_inclusive('\n').take(count);
    (model, lines.collect())
}

/// Leaves of each launch only the function of the largest tiles, whatever the number of rows; gives how many
/// launches had others.
fn with_largest_tiles(artifact: &Path) -> usize {
    change_launches(artifact, |launch| {
        let others = launch.functions.len() - 1;
        launch.functions.drain(..others);
        launch.functions[0].from_rows = 0;
        others > 0
    })
}

/// Takes the functions for warpgroups, whatever the number of rows; gives how many launches have one.
fn with_warpgroups(artifact: &Path) -> usize {
    change_launches(artifact, |launch| {
        let grouped = launch.grouped.iter_mut();
        grouped.map(|function| function.from_rows = 0).count() > 0
    })
}

/// Changes the launches of an artifact; gives how many were. The host's code says which manifest it is for.
fn change_launches(artifact: &Path, change: impl Fn(&mut GpuLaunch) -> bool) -> usize {
    let bytes = std::fs::read(artifact).expect("an artifact");
    let mut content = Artifact::from_bytes(&bytes).expect("an artifact");
    let before = manifest_mark(&content.manifest).expect("a mark");
    let kernels = content.manifest.kernels.iter_mut();
    let launches =
        kernels.flat_map(|kernel| kernel.gpu.iter_mut().flat_map(|gpu| &mut gpu.launches));
    let count = launches
        .map(change)
        .filter(|is_changed| *is_changed)
        .count();
    let after = manifest_mark(&content.manifest).expect("a mark");
    for object in &mut content.objects {
        let mut places = object.windows(before.len());
        if let Some(at) = places.position(|bytes| bytes == before.as_bytes()) {
            object[at..at + after.len()].copy_from_slice(after.as_bytes());
        }
    }
    std::fs::write(artifact, content.to_bytes().expect("an artifact")).expect("a file");
    count
}

/// An artifact's PTX.
fn ptx_of(artifact: &Path) -> String {
    let bytes = std::fs::read(artifact).expect("an artifact");
    let content = Artifact::from_bytes(&bytes).expect("an artifact");
    let text = content.device_code.into_iter().map(|code| code.bytes);
    String::from_utf8(text.collect::<Vec<_>>().concat()).expect("PTX is text")
}

/// The opcodes of an artifact's PTX.
fn opcodes(artifact: &Path) -> BTreeSet<String> {
    let text = ptx_of(artifact);
    let opcode = |line: &str| {
        let line = line.trim_start_matches(['{', ' ', '\t']);
        let line = match line.strip_prefix('@') {
            Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim_start(),
            None => line,
        };
        let word = line.split(|c: char| c.is_whitespace() || c == ';').next()?;
        let is_opcode = word.starts_with(|c: char| c.is_ascii_lowercase());
        is_opcode.then(|| word.to_owned())
    };
    text.lines().filter_map(opcode).collect()
}

/// Of models: a flush at once, launch by launch where calls are timed, and, if wanted, with the largest tiles.
/// Each opcode is one of those that the interpreter's own tests have.
fn computes_the_bits_of_the_simulator(
    precision: &str,
    models: impl Iterator<Item = (Model, String)>,
    is_large: bool,
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let tested = include_str!("../../../../ptx/tests/opcodes.txt");
    let tested: BTreeSet<&str> = tested.lines().collect();
    let (mut large, mut untested) = (0, BTreeSet::new());
    for (model, input) in models {
        compile(&model, precision, &artifact);
        untested.extend(opcodes(&artifact));
        let expected = run(&model, &artifact, &["gpu-sim"], &input).expect_code(0);
        let computes_the_same = |way: &[&str]| {
            let found = run(&model, &artifact, way, &input).expect_code(0);
            assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
        };
        computes_the_same(&["ptx-sim"]);
        computes_the_same(&["ptx-sim", "--device-times"]);
        if is_large {
            large += with_largest_tiles(&artifact);
            computes_the_same(&["ptx-sim"]);
        }
    }
    untested.retain(|opcode| !tested.contains(&**opcode));
    assert!(untested.is_empty(), "{untested:?}");
    assert_eq!(is_large, large > 20, "{large} launches have larger tiles");
}

#[test]
fn the_text_computes_the_bits_of_the_simulator_in_f32() {
    let models = MODELS.iter().map(model_of).chain(SHIPPED.map(shipped));
    computes_the_bits_of_the_simulator("f32", models, true);
}

/// With the simulator's sums of products.
#[test]
fn the_text_computes_the_bits_of_the_simulator_in_tf32() {
    computes_the_bits_of_the_simulator("tf32", MODELS.iter().map(model_of), false);
}

#[test]
fn the_text_computes_the_bits_of_the_simulator_in_bf16() {
    computes_the_bits_of_the_simulator("bf16", MODELS.iter().map(model_of), false);
}

/// Tiles of 128 rows and 256 columns, of which the last ones are not full: of one product, of two at the same place whose
/// terms go on in another one, and of more sums than the buffers have room for at once.
#[test]
fn the_largest_tiles_compute_the_bits_of_the_smallest() {
    let text =
        "dim D, F param wx: f32[D, F] param ha: f32[F, F] param hb: f32[F, F] param xa: f32[D, F]
        param xb: f32[D, F] param wo: f32[F, D]
        fn main(x: f32[n, D]) -> (f32[n, F], f32[n, D]) {
          let h = tanh(x @ wx);
          let y = (h @ ha + x @ xa) * sigmoid(h @ hb + x @ xb);
          (y, y @ wo)
        }";
    let mut rng = Rng::new(66);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let rows = |n: usize, rng: &mut Rng| -> Vec<Vec<f64>> {
        let row = |rng: &mut Rng| (0..64).map(|_| rng.signed_unit()).collect();
        (0..n).map(|_| row(rng)).collect()
    };
    let instances = [1, 61, 90].map(|n| format!("{}\n", json!({"x": rows(n, &mut rng)})));
    let input = instances.concat();
    let model = Model::from_text(text, &[("D", 64), ("F", 288)], &mut rng);
    for precision in ["tf32", "bf16"] {
        let way = ["--emit=loops", "--gpu-arch=ptx", "--precision", precision];
        let loops = model.batch_opt(&way).expect_code(0).output;
        assert!(loops.matches(" largest [8, ").count() >= 2, "{loops}");
        compile(&model, precision, &artifact);
        let expected = run(&model, &artifact, &["gpu-sim"], &input).expect_code(0);
        with_largest_tiles(&artifact);
        for device in ["gpu-sim", "ptx-sim"] {
            let found = run(&model, &artifact, &[device], &input).expect_code(0);
            assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
        }
    }
}

/// Tiles of warpgroups, of rows in bf16 that a launch of their own rounds and of rows that are stored so: of one product, and of two at
/// the same place whose terms go on in another one. Each opcode has a case of its own.
#[test]
fn warpgroups_compute_the_bits_of_the_smallest_tiles() {
    let text =
        "dim D, F param wx: f32[D, F] param ha: f32[F, F] param hb: f32[F, F] param xa: f32[D, F]
        param xb: f32[D, F]
        fn main(x: f32[n, D]) -> f32[n, F] {
          let h = tanh(x @ wx);
          (h @ ha + x @ xa) * sigmoid(h @ hb + x @ xb) + h
        }";
    let mut rng = Rng::new(68);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let rows = |n: usize, rng: &mut Rng| -> Vec<Vec<f64>> {
        let row = |rng: &mut Rng| (0..64).map(|_| rng.signed_unit()).collect();
        (0..n).map(|_| row(rng)).collect()
    };
    let instances = [1, 0, 61, 240].map(|n| format!("{}\n", json!({"x": rows(n, &mut rng)})));
    let input = instances.concat();
    let model = Model::from_text(text, &[("D", 64), ("F", 320)], &mut rng);
    compile_for(&model, "bf16", "--gpu-arch=ptx,compute_90a,sim", &artifact);
    let tested = include_str!("../../../../ptx/tests/opcodes.txt");
    let tested: BTreeSet<&str> = tested.lines().collect();
    let mut untested = opcodes(&artifact);
    assert!(
        untested
            .iter()
            .any(|opcode| opcode.starts_with("wgmma.mma_async"))
    );
    untested.retain(|opcode| !tested.contains(&**opcode));
    assert!(untested.is_empty(), "{untested:?}");
    let ways: [&[&str]; 5] = [
        &["gpu-sim"],
        &["gpu-sim", "--batch", "1"],
        &["ptx-sim"],
        &["ptx-sim", "--tensor-cores", "ampere"],
        &["ptx-sim", "--tensor-cores", "hopper"],
    ];
    let all = |artifact: &Path| ways.map(|way| run(&model, artifact, way, &input).expect_code(0));
    let expected = all(&artifact);
    compare_records(
        &model.oracle_lines(&input),
        &expected[0].lines(),
        Closeness::WholeOutput(2e-2),
    )
    .unwrap_or_else(|message| panic!("{message}\nfrom {}", expected[0].describe()));
    assert_eq!(with_warpgroups(&artifact), 2);
    for (expected, found) in expected.iter().zip(all(&artifact)) {
        assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
    }
}

/// Tensor cores that cut off: other bits, as close to the oracle as the precision is, whatever the batch.
#[test]
fn tensor_cores_that_cut_off_are_close_to_the_oracle() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let (model, input) = model_of(model_case("treelstm"));
    for (precision, part) in [("tf32", 2e-3), ("bf16", 2e-2)] {
        compile(&model, precision, &artifact);
        let nearest = run(&model, &artifact, &["ptx-sim"], &input).expect_code(0);
        for cores in ["ampere", "hopper"] {
            let way = ["ptx-sim", "--tensor-cores", cores];
            let found = run(&model, &artifact, &way, &input).expect_code(0);
            assert_ne!(nearest.lines(), found.lines(), "{}", found.describe());
            let closeness = Closeness::WholeOutput(part);
            compare_records(&model.oracle_lines(&input), &found.lines(), closeness)
                .unwrap_or_else(|message| panic!("{message}\nfrom {}", found.describe()));
            let alone = run(
                &model,
                &artifact,
                &[&way[..], &["--batch", "1"]].concat(),
                &input,
            );
            assert_eq!(
                found.lines(),
                alone.expect_code(0).lines(),
                "{precision}, {cores}"
            );
        }
    }
    run(
        &model,
        &artifact,
        &["gpu-sim", "--tensor-cores", "hopper"],
        &input,
    )
    .expect_code(2)
    .expect_message(&["`--tensor-cores` is for `--device ptx-sim`"]);
}

/// Writes an artifact whose text is another.
fn change_text(right: &[u8], artifact: &Path, change: &dyn Fn(&str) -> String) {
    let mut content = Artifact::from_bytes(right).expect("an artifact");
    for code in &mut content.device_code {
        let text = String::from_utf8(code.bytes.clone()).expect("PTX is text");
        let other = change(&text);
        assert_ne!(text, other, "nothing was changed");
        code.bytes = other.into_bytes();
    }
    std::fs::write(artifact, content.to_bytes().expect("an artifact")).expect("a file");
}

/// Where weights stay in shared memory: waiting for too few terms of the rows, a buffer that is written while others read
/// it, weights that some threads do not load as another said they were there, and a word that says what is not there.
#[test]
fn a_mistake_with_weights_that_stay_shows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let case = model_case("treelstm");
    let mut rng = Rng::new(67);
    let model = case.with_sizes([28, 16, 16, 5], &mut rng);
    let input = to_text(&case.instances(&model, 4, &mut rng));
    compile(&model, "f32", &artifact);
    let right = std::fs::read(&artifact).expect("an artifact");
    let expected = run(&model, &artifact, &["ptx-sim"], &input).expect_code(0);
    let word = "st.shared.b32 \t[cohort_flush$shared+24576], ";
    let barrier = "bar.sync \t0;";
    // Behind where it says that nothing is there.
    let said = |text: &str| text.rfind(word).expect("a word that is set");
    let mistakes: [&dyn Fn(&str) -> String; 4] = [
        &|text| text.replace("cp.async.wait_group \t2;", "cp.async.wait_group \t3;"),
        &|text| {
            let waits = format!("cp.async.wait_group \t2;\n\t{barrier}");
            text.replace(&waits, "cp.async.wait_group \t2;")
        },
        &|text| {
            let (before, behind) = text.split_at(said(text));
            let at = before.rfind(barrier).expect("a barrier");
            [&before[..at], &before[at + barrier.len()..], behind].concat()
        },
        // Of the third kernel the first columns.
        &|text| text.replacen(&format!("{word}0;"), &format!("{word}131073;"), 1),
    ];
    for (number, mistake) in mistakes.into_iter().enumerate() {
        change_text(&right, &artifact, mistake);
        let found = run(&model, &artifact, &["ptx-sim"], &input);
        let is_caught = found.code != 0 || found.lines() != expected.lines();
        assert!(is_caught, "{number}: {}", found.describe());
    }
}

/// What the text lacks shows: barriers of a block, those of the grid, fences, and waiting for copies.
#[test]
fn a_mistake_in_the_text_shows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let (model, input) = model_of(model_case("treelstm"));
    compile(&model, "tf32", &artifact);
    let right = std::fs::read(&artifact).expect("an artifact");
    let expected = run(&model, &artifact, &["ptx-sim"], &input).expect_code(0);
    let changed = |change: &dyn Fn(&str) -> String| {
        change_text(&right, &artifact, change);
        run(&model, &artifact, &["ptx-sim"], &input)
    };
    let is_caught = |found: &Outcome| found.code != 0 || found.lines() != expected.lines();
    let found =
        changed(&|text| text.replace("cp.async.wait_group \t0;", "cp.async.wait_group 99;"));
    assert!(is_caught(&found), "copies: {}", found.describe());
    let found = changed(&|text| text.replace("bar.sync \t0;", ""));
    assert!(is_caught(&found), "barriers: {}", found.describe());
    // All blocks come to the barrier of the grid, but see what others wrote when it may be too late.
    let found = changed(&|text| text.replace("fence.acq_rel.gpu;", ""));
    assert!(is_caught(&found), "fences: {}", found.describe());
    // It goes on as if all had come.
    let found = changed(&|text| {
        let line = |line: &str| match line.trim().strip_prefix("ld.relaxed.gpu.global.b32 \t") {
            Some(rest) => {
                let (register, _) = rest.split_once(',').expect("a register");
                format!("mov.b32 {register}, 0x7fffffff;")
            }
            None => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    });
    assert!(
        is_caught(&found),
        "the grid's barrier: {}",
        found.describe()
    );
    // What is not interpreted is told with its line.
    changed(&|text| text.replace("fma.rn.f32", "fma.rn.ftz.f32"))
        .expect_code(2)
        .expect_message(&["of the PTX: `fma.rn.ftz.f32` is not interpreted"]);
}

/// A kernel of more than LLVM writes out unasked where it is called, in the function of a whole flush: the text has no
/// function but those that are launched.
#[test]
fn a_long_kernel_is_part_of_the_flush() {
    let steps = |from: &str, number: usize| format!("let a{number} = tanh({from} + x);\n");
    let chain = (1..100).map(|number| steps(&format!("a{}", number - 1), number));
    let text = format!(
        "dim D param w: f32[D, D]
        fn main(x: f32[D]) -> f32[D] {{ let a0 = x @ w;\n{} a99 }}",
        chain.collect::<String>()
    );
    let mut rng = Rng::new(68);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = folder.path().join("model.cohort");
    let row = |rng: &mut Rng| (0..12).map(|_| rng.signed_unit()).collect::<Vec<f64>>();
    let instances = [0; 5].map(|_| format!("{}\n", json!({"x": row(&mut rng)})));
    let input = instances.concat();
    let model = Model::from_text(&text, &[("D", 12)], &mut rng);
    compile(&model, "f32", &artifact);
    let functions = ptx_of(&artifact).matches(".func").count();
    assert_eq!(functions, 0, "functions that are called");
    let expected = run(&model, &artifact, &["gpu-sim"], &input).expect_code(0);
    let found = run(&model, &artifact, &["ptx-sim"], &input).expect_code(0);
    assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
}
