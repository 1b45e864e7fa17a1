//! A program with its weights, as the oracle runs it and as files that the tools read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cohort_frontend::program::{Elem, Program};
use cohort_frontend::{Checked, Diagnostic, Sources, check};
use cohort_oracle::{Limits, Oracle, read_weights, weight_shapes};
use tempfile::TempDir;

use crate::records;
use crate::rng::Rng;
use crate::tools::{BatchRun, Outcome, run};
use crate::weights::{Weights, random_weights, write_weights};

/// A program that is bound to weights.
#[derive(Debug)]
pub struct Model {
    /// The program's file.
    pub source: PathBuf,
    /// The weights' file.
    pub weights_path: PathBuf,
    /// The program, parsed and checked.
    pub program: Program,
    /// The weights, loaded.
    pub weights: Weights,
    /// Holds the files that were made for this model.
    _folder: Option<TempDir>,
}

impl Model {
    /// A program with weights that exist as a file.
    #[track_caller]
    pub fn with_weights_file(source: &Path, weights_path: &Path) -> Model {
        let weights = read_weights(weights_path)
            .unwrap_or_else(|error| panic!("{}: {error}", weights_path.display()));
        let program = check_program(source, &weight_shapes(&weights), &BTreeMap::new());
        Model {
            source: source.to_path_buf(),
            weights_path: weights_path.to_path_buf(),
            program,
            weights,
            _folder: None,
        }
    }

    /// A program with random weights, for the given program dims.
    #[track_caller]
    pub fn with_random_weights(source: &Path, dims: &[(&str, u64)], rng: &mut Rng) -> Model {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dims = dims
            .iter()
            .map(|&(name, size)| (name.to_string(), size))
            .collect();
        let program = check_program(source, &BTreeMap::new(), &dims);
        let weights = random_weights(&program, rng);
        let weights_path = folder.path().join("weights.safetensors");
        write_weights(&weights_path, &weights);
        let source = source.to_path_buf();
        Model {
            source,
            weights_path,
            program,
            weights,
            _folder: Some(folder),
        }
    }

    /// A program that exists as a text only, with random weights.
    #[track_caller]
    pub fn from_text(text: &str, dims: &[(&str, u64)], rng: &mut Rng) -> Model {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = folder.path().join("program.coh");
        fs::write(&source, text).expect("the temporary folder is writable");
        let mut model = Model::with_random_weights(&source, dims, rng);
        // Both folders must live as long as the model; one holds everything.
        let weights_path = folder.path().join("weights.safetensors");
        write_weights(&weights_path, &model.weights);
        model.weights_path = weights_path;
        model._folder = Some(folder);
        model
    }

    /// A call of `batch-run` with this program and these weights.
    pub fn batch_run(&self) -> BatchRun {
        BatchRun::new(&self.source).weights(&self.weights_path)
    }

    /// What `batch-opt` makes of the model in some way.
    pub fn batch_opt(&self, way: &[&str]) -> Outcome {
        let mut arguments: Vec<OsString> = vec![
            self.source.clone().into(),
            "--weights".into(),
            self.weights_path.clone().into(),
        ];
        arguments.extend(way.iter().map(OsString::from));
        run("batch-opt", &arguments, "")
    }

    /// The model as an artifact, compiled in some way.
    #[track_caller]
    pub fn compile(&self, way: &[&str]) -> Compiled<'_> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let artifact = folder.path().join("model.cohort");
        let to = artifact.to_str().expect("a path in UTF-8");
        self.batch_opt(&[&["--emit=artifact", "-o", to], way].concat())
            .expect_code(0);
        Compiled {
            model: self,
            artifact,
            _folder: folder,
        }
    }

    /// What the oracle makes of a text of input, as lines.
    #[track_caller]
    pub fn oracle_lines(&self, input: &str) -> Vec<String> {
        let oracle = Oracle::new(&self.program, self.weights.clone())
            .unwrap_or_else(|error| panic!("{}: {error}", self.source.display()));
        let mut output = Vec::new();
        oracle
            .run_stream(input.as_bytes(), &mut output, Limits::default())
            .expect("memory can be written to");
        records::lines(&String::from_utf8(output).expect("the oracle writes text"))
    }

    /// The number of words that the model knows: the rows of its `emb`.
    pub fn vocabulary(&self) -> usize {
        self.weights.get("emb").map_or(1, |table| table.shape[0])
    }
}

/// A model that is compiled once, to be run in many ways: compiling is what takes a run's time.
#[derive(Debug)]
pub struct Compiled<'a> {
    model: &'a Model,
    /// The artifact's file.
    pub artifact: PathBuf,
    _folder: TempDir,
}

impl Compiled<'_> {
    /// A call of `batch-run` with this artifact and the model's weights.
    pub fn batch_run(&self) -> BatchRun {
        BatchRun::new(&self.artifact).weights(&self.model.weights_path)
    }
}

#[track_caller]
fn check_program(
    source: &Path,
    shapes: &BTreeMap<String, (Elem, Vec<u64>)>,
    dims: &BTreeMap<String, u64>,
) -> Program {
    let text = fs::read_to_string(source)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", source.display()));
    let mut sources = Sources::new();
    let file = sources.add(source.display().to_string(), text.clone());
    sources.read_imports(file, source);
    let checked: Result<Checked, Vec<Diagnostic>> = check(&sources, file);
    checked
        .and_then(|checked| checked.bind(shapes, dims))
        .unwrap_or_else(|diagnostics| {
            let mut rendered = Vec::new();
            // Writing to memory does not fail.
            let _ = cohort_frontend::render(&diagnostics, &sources, &mut rendered, false);
            panic!(
                "{}\nin the program\n{text}",
                String::from_utf8_lossy(&rendered)
            )
        })
}
