//! Every example against goldens that another implementation computed in f64.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cohort_frontend::program::Program;
use cohort_frontend::{Sources, check, render};
use cohort_oracle::{Limits, Oracle, Tolerance, compare_outputs, read_weights, weight_shapes};
use serde_json::Value as Json;

/// The goldens are f64 results that were rounded to f32.
const TOLERANCE: Tolerance = Tolerance {
    relative: 1.5e-7,
    absolute: 1e-9,
};

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What these compute is what they learnt; `trained` of the end-to-end tests holds it against the data.
const TRAINED: [&str; 3] = ["listops", "ponder", "sst"];

/// The examples that have goldens.
pub fn examples() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace().join("examples")).expect("there are examples") {
        let folder = entry.expect("the folder can be read").path();
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        names.extend(name.filter(|name| folder.join(format!("{name}.coh")).is_file()));
    }
    names.retain(|name| !TRAINED.contains(&name.as_str()));
    names.sort();
    names
}

/// Folders with weights and an input, and the file with the outputs.
fn goldens(model: &str) -> Vec<(PathBuf, PathBuf)> {
    let goldens = workspace().join("test/goldens");
    let example = workspace().join("examples").join(model);
    let golden = |name: &str| goldens.join(format!("{name}.jsonl"));
    match model {
        // The example has trained weights; the random ones of the others lie elsewhere.
        "treelstm" => {
            vec![
                (goldens.join(model), golden(model)),
                (example, golden("treelstm_trained")),
            ]
        }
        _ => vec![(example, golden(model))],
    }
}

pub fn compile(model: &str, weights: &BTreeMap<String, cohort_oracle::Tensor>) -> Program {
    let path = workspace()
        .join("examples")
        .join(model)
        .join(format!("{model}.coh"));
    let text = fs::read_to_string(&path).expect("the program can be read");
    let mut sources = Sources::new();
    let file = sources.add(format!("{model}.coh"), text);
    check(&sources, file)
        .and_then(|checked| checked.bind(&weight_shapes(weights), &BTreeMap::new()))
        .unwrap_or_else(|diagnostics| {
            let mut rendered = Vec::new();
            render(&diagnostics, &sources, &mut rendered, false).expect("memory takes all of it");
            panic!("{}", String::from_utf8_lossy(&rendered))
        })
}

#[track_caller]
pub fn read_lines(path: &Path) -> Vec<Json> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// Where a decision falls otherwise than in the goldens, the whole output differs; the goldens
/// have no decision that is close.
#[track_caller]
fn agrees(model: &str) {
    for (folder, outputs) in goldens(model) {
        let weights = read_weights(&folder.join("weights.safetensors")).unwrap_or_default();
        let program = compile(model, &weights);
        let oracle = Oracle::new(&program, weights).expect("the weights fit");
        let instances = read_lines(&folder.join("input.jsonl"));
        let expected = read_lines(&outputs);
        assert_eq!(instances.len(), expected.len(), "{model}");
        for (instance, expected) in instances.iter().zip(&expected) {
            let id = instance["id"].as_str().expect("an id");
            assert_eq!(instance["id"], expected["id"], "{model}");
            let output = oracle
                .run(id, instance, Limits::default())
                .unwrap_or_else(|error| panic!("{model}, {id}: {error}"));
            compare_outputs(&expected["output"], &output, TOLERANCE)
                .unwrap_or_else(|message| panic!("{model}, {id}: {message}"));
        }
    }
}

#[test]
fn every_example_agrees_with_its_goldens() {
    let examples = examples();
    assert!(
        examples.len() >= 17,
        "examples with a program: {examples:?}"
    );
    for model in examples {
        agrees(&model);
    }
}
