//! Checkpoints in several files: `model.safetensors.index.json` says which tensor is in which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::file::bad;
use crate::error::Error;

/// What the folder of a checkpoint has, in this order.
const IN_FOLDER: [&str; 2] = ["model.safetensors.index.json", "model.safetensors"];

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The safetensors files of a path: of an index (`.json`) or of a folder those that it names, and otherwise
/// the path itself.
pub fn shards(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if path.is_dir() {
        let inside = IN_FOLDER.map(|name| path.join(name));
        let found = inside.into_iter().find(|path| path.is_file());
        let missing = || {
            format!(
                "neither {} nor {} is in this folder",
                IN_FOLDER[0], IN_FOLDER[1]
            )
        };
        return shards(&found.ok_or_else(|| bad(path, missing()))?);
    }
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(vec![path.to_owned()]);
    }
    let text = std::fs::read(path).map_err(|source| Error::OpenWeights {
        path: path.to_owned(),
        source,
    })?;
    let index: Index = serde_json::from_slice(&text)
        .map_err(|error| bad(path, format!("it is not an index of such files: {error}")))?;
    let mut names: Vec<String> = index.weight_map.into_values().collect();
    names.sort_unstable();
    names.dedup();
    let folder = path.parent().unwrap_or(Path::new(""));
    let each = names.into_iter().map(|name| {
        let is_plain = Path::new(&name)
            .file_name()
            .is_some_and(|own| own == name.as_str());
        match is_plain {
            true => Ok(folder.join(name)),
            false => Err(bad(
                path,
                format!("it names `{name}`, which is not in its folder"),
            )),
        }
    });
    each.collect()
}
