//! `batch-opt --tune` and `--tuning`: numbers of kernels' schedules that were measured, and what they leave as it is.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cohort_e2e::paths::workspace;
use cohort_e2e::tools::{BatchRun, Outcome, run};

struct Example {
    program: PathBuf,
    weights: PathBuf,
    input: PathBuf,
}

impl Example {
    fn new(model: &str) -> Example {
        let folder = workspace().join("examples").join(model);
        Example {
            program: folder.join(format!("{model}.coh")),
            weights: folder.join("weights.safetensors"),
            input: folder.join("input.jsonl"),
        }
    }

    /// Calls `batch-opt` with the program and its weights.
    fn compile(&self, arguments: &[&str], output: &Path) -> Outcome {
        let mut all: Vec<OsString> = vec![self.program.clone().into()];
        all.extend(["--weights".into(), self.weights.clone().into()]);
        all.extend(["-o".into(), output.into()]);
        all.extend(arguments.iter().map(OsString::from));
        run("batch-opt", &all, "")
    }

    #[track_caller]
    fn results(&self, model: &Path) -> Vec<String> {
        let run = BatchRun::new(model).weights(&self.weights);
        let run = run.arg("--input").arg(&self.input).args(&["--output", "-"]);
        run.run_as_given("").expect_code(0).lines()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of the tests")
}

/// A tuned artifact gives the bits of the program, and comes again from the tuning that was written.
#[test]
fn what_is_tuned_gives_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [tuned, again, tuning] =
        ["tuned.cohort", "again.cohort", "tuning.json"].map(|name| folder.path().join(name));
    for model in ["treelstm", "masked_mha"] {
        let example = Example::new(model);
        let arguments = ["--tune", "--input", text(&example.input), "--budget", "4"];
        let arguments = [
            &arguments[..],
            &["--write-tuning", text(&tuning), "--emit=artifact"],
        ]
        .concat();
        let outcome = example.compile(&arguments, &tuned).expect_code(0);
        outcome.expect_message(&["tuned:"]);
        assert_eq!(
            example.results(&tuned),
            example.results(&example.program),
            "{model}"
        );
        let arguments = ["--tuning", text(&tuning), "--emit=artifact"];
        example.compile(&arguments, &again).expect_code(0);
        let [tuned, again] = [&tuned, &again].map(|path| fs::read(path).expect("an artifact"));
        assert!(
            tuned == again,
            "{model}: another artifact of the same tuning"
        );
    }
}

/// A tuning by hand is seen in the text, kept in the artifact, and obeyed without another bit.
#[test]
fn a_tuning_is_obeyed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [artifact, tuning, loops] =
        ["tuned.cohort", "tuning.json", "loops.mlir"].map(|name| folder.path().join(name));
    let example = Example::new("masked_mha");
    example.compile(&["--emit=loops"], &loops).expect_code(0);
    let planned = fs::read_to_string(&loops).expect("the loop level");
    // The kernel in which something of this text is.
    let kernel_of = |part: &str| {
        let before = planned.split(part).next().expect("something before");
        let name = before.rsplit("ragged.kernel @").next().expect("a kernel");
        name.split(' ').next().expect("a name").to_owned()
    };
    let (rows, softmax) = (
        kernel_of("ragged.product"),
        kernel_of("ragged.online_softmax"),
    );
    let choices = format!(
        r#"{{"{rows}": {{"rows": 36, "tile": 6, "fused_rows": 0, "fused_columns": 1}},
            "{softmax}": {{"softmax_rows": 24, "tails": 0}}, "gone": {{"rows": 12}}}}"#
    );
    fs::write(&tuning, choices).expect("the temporary folder is writable");
    let outcome = example.compile(&["--tuning", text(&tuning), "--emit=loops"], &loops);
    let outcome = outcome.expect_code(0);
    outcome.expect_message(&["there is no kernel `gone`"]);
    let tuned = fs::read_to_string(&loops).expect("the loop level");
    for part in [
        "ragged.blocks of 36 tile 12 {",
        " tile 6 :",
        "blocks [24, 256]",
        "ragged.calls hoisted grain 24 ",
    ] {
        assert!(tuned.contains(part), "`{part}` is not in\n{tuned}");
    }
    let arguments = ["--tuning", text(&tuning), "--emit=artifact"];
    example
        .compile(&arguments, &artifact)
        .expect_code(0)
        .expect_message(&["warning", "`gone`"]);
    let bytes = fs::read(&artifact).expect("an artifact");
    let manifest = String::from_utf8_lossy(&bytes);
    let described = format!("tuned {rows}: fused_columns=1 fused_rows=0 rows=36 tile=6");
    assert!(
        manifest.contains(&described),
        "the artifact does not say `{described}`"
    );
    assert_eq!(
        example.results(&artifact),
        example.results(&example.program)
    );
}

/// The caches that a program is planned for change its blocks, and none of the bits.
#[test]
fn caches_change_blocks_and_no_bits() {
    const USUAL: &str = "cfb.caches = array<i64: 32768, 1048576, 8388608>";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [batched, other, loops, artifact] =
        ["batched.mlir", "other.mlir", "loops.mlir", "other.cohort"]
            .map(|name| folder.path().join(name));
    for model in ["treelstm", "masked_mha", "encoder"] {
        let example = Example::new(model);
        let arguments = ["--emit=batched", "--target-cpu=x86-64"];
        example.compile(&arguments, &batched).expect_code(0);
        let planned_for = fs::read_to_string(&batched).expect("the batched level");
        assert!(planned_for.contains(USUAL), "`{USUAL}` is not there");
        let expected = example.results(&example.program);
        let mut planned = Vec::new();
        for caches in ["4096, 4096, 4096", "1048576, 8388608, 67108864"] {
            let caches = format!("cfb.caches = array<i64: {caches}>");
            let text_of = planned_for.replace(USUAL, &caches);
            fs::write(&other, text_of).expect("the temporary folder is writable");
            for (emit, output) in [("--emit=loops", &loops), ("--emit=artifact", &artifact)] {
                let arguments = [text(&other), emit, "-o", text(output)];
                run("batch-opt", &arguments.map(OsString::from), "").expect_code(0);
            }
            let text_of = fs::read_to_string(&loops).expect("the loop level");
            planned.push(text_of.replace(&caches, ""));
            assert_eq!(example.results(&artifact), expected, "{model}: {caches}");
        }
        assert_ne!(planned[0], planned[1], "{model}");
    }
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [output, empty, strange, wrong] =
        ["out", "empty.jsonl", "strange.jsonl", "wrong.json"].map(|name| folder.path().join(name));
    fs::write(&empty, "").expect("the temporary folder is writable");
    fs::write(&strange, "{\"x\": 3}\n").expect("the temporary folder is writable");
    fs::write(&wrong, r#"{"cell": {"tile": 5}}"#).expect("the temporary folder is writable");
    let example = Example::new("treelstm");
    let input = text(&example.input);
    let cases: [(&[&str], &str); 10] = [
        (&["--tune", "--emit=artifact"], "sample instances"),
        (&["--tune", "--input", input], "needs one of them"),
        (
            &["--tune", "--input", input, "--emit=blocks"],
            "needs one of them",
        ),
        (
            &[
                "--tune",
                "--input",
                input,
                "--emit=artifact",
                "--budget",
                "0",
            ],
            "seconds above 0",
        ),
        (
            &[
                "--tune",
                "--input",
                input,
                "--emit=artifact",
                "--target-cpu",
                "x86-64-v3",
            ],
            "measures on this processor",
        ),
        (
            &["--tune", "--input", text(&empty), "--emit=artifact"],
            "has none",
        ),
        (
            &["--tune", "--input", text(&strange), "--emit=artifact"],
            "1 of 1 failed",
        ),
        (&["--emit=artifact", "--budget", "3"], "are for `--tune`"),
        (
            &["--emit=artifact", "--input", input],
            "is for `--bisect` and `--tune`",
        ),
        (
            &["--emit=artifact", "--tuning", text(&wrong)],
            "expected `tile` to be 1, 2, 4",
        ),
    ];
    for (arguments, message) in cases {
        example
            .compile(arguments, &output)
            .expect_code(2)
            .expect_message(&[message]);
    }
    assert!(!output.exists(), "something was written");
}
