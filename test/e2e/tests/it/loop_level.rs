//! The loop level is all there is between kernels and their code: a program that is printed there and read
//! back becomes the very same object.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cohort_e2e::paths::workspace;
use cohort_e2e::tools::{BatchRun, run};

/// Compiles a file to `emit`, into another.
#[track_caller]
fn compile(input: &Path, weights: Option<&Path>, emit: &str, output: &Path) {
    compile_for(None, input, weights, emit, output);
}

/// The same, for a GPU as well.
#[track_caller]
fn compile_for(
    gpu: Option<&[&str]>,
    input: &Path,
    weights: Option<&Path>,
    emit: &str,
    output: &Path,
) {
    let mut arguments: Vec<OsString> = vec![input.into(), format!("--emit={emit}").into()];
    arguments.extend(gpu.into_iter().flatten().map(OsString::from));
    if let Some(weights) = weights {
        arguments.extend(["--weights".into(), weights.into()]);
    }
    if emit == "loops" {
        arguments.push("--emit-bytecode".into());
    }
    arguments.extend(["-o".into(), output.into()]);
    run("batch-opt", &arguments, "").expect_code(0);
}

/// Prints the loop level of a program with its locations, which the object holds.
#[track_caller]
fn print_loops(program: &Path, weights: &Path, output: &Path) {
    print_loops_for(None, program, weights, output);
}

#[track_caller]
fn print_loops_for(gpu: Option<&[&str]>, program: &Path, weights: &Path, output: &Path) {
    let bytecode = output.with_extension("bc");
    compile_for(gpu, program, Some(weights), "loops", &bytecode);
    let printed = "--mlir-print-debuginfo".into();
    let arguments = [bytecode.into(), printed, "-o".into(), output.into()];
    run("batch-opt", &arguments, "").expect_code(0);
}

/// The programs of `examples/` that have weights beside them.
fn examples() -> Vec<(PathBuf, PathBuf)> {
    let folders = fs::read_dir(workspace().join("examples")).expect("there are examples");
    let folders = folders.map(|entry| entry.expect("the folder can be read").path());
    let mut examples: Vec<_> = folders
        .filter_map(|folder| {
            let name = folder.file_name()?.to_str()?.to_owned();
            let program = folder.join(format!("{name}.coh"));
            let weights = folder.join("weights.safetensors");
            (program.is_file() && weights.is_file()).then_some((program, weights))
        })
        .collect();
    examples.sort();
    assert!(examples.len() > 15, "too few examples");
    examples
}

#[test]
fn examples_come_back_from_text_as_the_same_object() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [object, loops, again] =
        ["object.o", "loops.mlir", "again.o"].map(|name| folder.path().join(name));
    for (program, weights) in examples() {
        compile(&program, Some(&weights), "object", &object);
        print_loops(&program, &weights, &loops);
        compile(&loops, None, "object", &again);
        let [object, again] = [&object, &again].map(|path| fs::read(path).expect("an object"));
        assert!(
            object == again,
            "{} is another object by way of text",
            program.display()
        );
    }
}

/// What is planned for a GPU: host code, PTX and what the manifest says of launches.
#[test]
fn examples_come_back_from_text_as_the_same_code_for_gpus() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [artifact, loops, again] =
        ["model.cohort", "loops.mlir", "again.cohort"].map(|name| folder.path().join(name));
    for (number, (program, weights)) in examples().into_iter().enumerate() {
        // What tensor cores change is the same in all products.
        let precisions = ["--precision=f32", "--precision=tf32"];
        for precision in &precisions[..1 + usize::from(number % 3 == 0)] {
            let gpu: Option<&[&str]> = Some(&["--gpu-arch=ptx", precision]);
            compile_for(gpu, &program, Some(&weights), "artifact", &artifact);
            print_loops_for(gpu, &program, &weights, &loops);
            let text = fs::read_to_string(&loops).expect("the loop level");
            compile_for(gpu, &loops, None, "artifact", &again);
            let [artifact, again] =
                [&artifact, &again].map(|path| fs::read(path).expect("an artifact"));
            assert!(
                artifact == again,
                "{} is another artifact by way of text, {precision}",
                program.display()
            );
            assert!(text.contains("gpu.module"), "nothing is planned");
        }
    }
}

/// Other tiles of a product, and other ways to have them in shared memory: the bits of a result depend on neither.
#[test]
fn other_tiles_of_a_gpu_give_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [loops, changed, artifact] =
        ["loops.mlir", "changed.mlir", "model.cohort"].map(|name| folder.path().join(name));
    for model in ["masked_mha", "trmm", "vgemm", "treelstm", "dagrnn"] {
        let example = workspace().join("examples").join(model);
        let [program, weights, input] = [
            &format!("{model}.coh"),
            "weights.safetensors",
            "input.jsonl",
        ]
        .map(|name| example.join(name));
        let gpu: Option<&[&str]> = Some(&["--gpu-arch=sim"]);
        print_loops_for(gpu, &program, &weights, &loops);
        let text = fs::read_to_string(&loops).expect("the loop level");
        let mut other = text.clone();
        for (from, to) in [
            ("blocks [64, 16]", "blocks [32, 8]"),
            ("blocks [64, 8]", "blocks [16, 16]"),
            ("left along_depth {", "left {"),
            ("right {", "right along_depth {"),
            (" small [2, 1, ", " small [3, 1, "),
            (" large [8, ", " large [3, "),
            (" copies [4, ", " copies [1, "),
            (" on_chip :", " :"),
            (" by 4 {", " by 2 {"),
        ] {
            other = other.replace(from, to);
        }
        assert_ne!(text, other, "{model} has none of them");
        let other_resident = text.replace(" resident [8, 64, 4", " resident [4, 16, 2");
        let other_resident = other_resident.replace(" clustered [4, 64, 4", " clustered [8, 16, 2");
        assert!(model != "treelstm" || text != other_resident);
        let texts = [text, without_resident(&other), other_resident];
        let results = texts.map(|text| {
            fs::write(&changed, text).expect("the temporary folder is writable");
            compile_for(gpu, &changed, None, "artifact", &artifact);
            let run = BatchRun::new(&artifact)
                .weights(&weights)
                .arg("--input")
                .arg(&input);
            let run = run
                .args(&["--output", "-", "--batch", "all", "--device", "gpu-sim"])
                .run_as_given("");
            run.expect_code(0).lines()
        });
        assert_eq!(results[0], results[1], "{model}");
        assert_eq!(results[0], results[2], "{model}");
    }
}

/// Where rows are not copied by fours no weights can stay.
fn without_resident(text: &str) -> String {
    let without = |text: String, size: &str| {
        let mut parts = text.split(size);
        let first = parts.next().unwrap_or_default().to_owned();
        let behind = parts.filter_map(|part| Some(part.split_once(']')?.1));
        behind.fold(first, |all, part| all + part)
    };
    [" resident [", " clustered ["]
        .into_iter()
        .fold(text.to_owned(), without)
}

/// Other rows of a block, row tiles, vectors, blocks of a product and ways to pack them: the bits of a result
/// depend on none of them.
#[test]
fn another_schedule_gives_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [loops, changed, artifact] =
        ["loops.mlir", "changed.mlir", "model.cohort"].map(|name| folder.path().join(name));
    for model in [
        "treelstm",
        "dagrnn",
        "berxit",
        "masked_mha",
        "trmm",
        "vgemm",
    ] {
        let example = workspace().join("examples").join(model);
        let [program, weights, input] = [
            &format!("{model}.coh"),
            "weights.safetensors",
            "input.jsonl",
        ]
        .map(|name| example.join(name));
        print_loops(&program, &weights, &loops);
        let text = fs::read_to_string(&loops).expect("the loop level");
        let mut other = with_small_products(&text);
        for (from, to) in [
            (" tile 12 :", " tile 4 :"),
            ("blocks of 96 ", "blocks of 7 "),
            (" by 32 ", " by 16 "),
            ("blocks [96, 256]", "blocks [36, 256]"),
            ("left along_depth {", "left {"),
            ("right {", "right along_depth {"),
        ] {
            other = other.replace(from, to);
        }
        assert_ne!(text, other, "{model} has none of them");
        fs::write(&changed, other).expect("the temporary folder is writable");
        let results = [&loops, &changed].map(|text| {
            compile(text, None, "artifact", &artifact);
            let run = BatchRun::new(&artifact)
                .weights(&weights)
                .arg("--input")
                .arg(&input);
            let run = run
                .args(&["--output", "-", "--batch", "all"])
                .run_as_given("");
            run.expect_code(0).lines()
        });
        assert_eq!(results[0], results[1], "{model}");
    }
}

/// The loop level with small blocks of products of calls, whose sizes follow from the machine's caches.
fn with_small_products(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let (Some(from), Some(to)) = (line.find(" rows "), line.find(" into ")) else {
            return line.to_owned();
        };
        match line.contains("ragged.matmul over ") {
            true => format!("{} rows 24 blocks [40, 24]{}", &line[..from], &line[to..]),
            false => line.to_owned(),
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// Other rows and keys of a softmax's block on a GPU, which are other orders of its sums.
#[test]
fn other_blocks_of_a_softmax_on_a_gpu() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [loops, changed, artifact, expected] =
        ["loops.mlir", "changed.mlir", "m.cohort", "y.jsonl"].map(|name| folder.path().join(name));
    let example = workspace().join("examples/masked_mha");
    let [program, weights, input] =
        ["masked_mha.coh", "weights.safetensors", "input.jsonl"].map(|name| example.join(name));
    let gpu: Option<&[&str]> = Some(&["--gpu-arch=sim"]);
    print_loops_for(gpu, &program, &weights, &loops);
    let text = fs::read_to_string(&loops).expect("the loop level");
    assert!(text.contains("blocks [32, 32]"), "there is no softmax");
    for blocks in ["[32, 32]", "[64, 32]", "[32, 64]", "[64, 64]"] {
        let other = text.replace("blocks [32, 32]", &format!("blocks {blocks}"));
        fs::write(&changed, other).expect("the temporary folder is writable");
        let is_first = blocks == "[32, 32]";
        compile_for(gpu, &changed, None, "artifact", &artifact);
        let run = BatchRun::new(&artifact)
            .weights(&weights)
            .arg("--input")
            .arg(&input);
        let run = run.args(&["--batch", "all", "--device", "gpu-sim", "--output"]);
        let run = match is_first {
            true => run.arg(&expected),
            false => run.arg("/dev/null").arg("--expect").arg(&expected),
        };
        run.run_as_given("").expect_code(0);
    }
}
