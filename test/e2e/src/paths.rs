//! Where things are in the repository.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("this crate is two folders deep")
        .to_path_buf()
}

/// `examples/<model>/<model>.coh`.
pub fn model_source(model: &str) -> PathBuf {
    workspace()
        .join("examples")
        .join(model)
        .join(format!("{model}.coh"))
}

/// A set of weights, inputs and expected outputs.
#[derive(Clone, Debug)]
pub struct Golden {
    /// The model's name, that of its folder.
    pub model: &'static str,
    /// The weights, trained by PyTorch.
    pub weights: PathBuf,
    /// Instances, JSON Lines.
    pub input: PathBuf,
    /// What PyTorch makes of the instances, JSON Lines.
    pub output: PathBuf,
}

/// The goldens of a model; the example of `treelstm` has trained weights and goldens of its own.
pub fn goldens(model: &'static str) -> Vec<Golden> {
    let goldens = workspace().join("test").join("goldens");
    let example = workspace().join("examples").join(model);
    let golden = |folder: &Path, output: &str| Golden {
        model,
        weights: folder.join("weights.safetensors"),
        input: folder.join("input.jsonl"),
        output: goldens.join(output),
    };
    if model == "treelstm" {
        vec![
            golden(&goldens.join(model), "treelstm.jsonl"),
            golden(&example, "treelstm_trained.jsonl"),
        ]
    } else {
        vec![golden(&example, &format!("{model}.jsonl"))]
    }
}
