//! Checkpoints: a training's state in a file, from which it goes on to the same bits.
//!
//! The file is safetensors: `parameters/w`, what the optimiser remembers (`squares/w`), and the best epoch's
//! `best/w`. Its metadata has one entry, of JSON: the state's numbers, by what the training is known, and
//! the digest of all of it and of every tensor. A file appears under its name when it is whole and on the disk;
//! the one that was there before stays until then.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use cohort_files::NewFile;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fingerprint;
use crate::groups::Group;
use crate::parameters::{Data, Parameter, Parameters, describe};
use crate::state::{Progress, State};

const ENTRY: &str = "cohort.checkpoint";
const VERSION: u32 = 1;

/// By what a training is known, `--rate` or "the program": what must be the same to go on.
pub type Identity = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    digest: String,
    /// JSON of [`Body`], as it was digested.
    body: String,
}

#[derive(Serialize, Deserialize)]
struct Body {
    identity: Identity,
    progress: Progress,
}

struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Writes a checkpoint in the place of the one that is there.
pub fn save(
    path: &Path,
    state: &State,
    groups: &[Group],
    identity: &Identity,
) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let bytes = encode(state, groups, identity).map_err(io::Error::other)?;
        let mut file = NewFile::create(path)?;
        file.write_all(&bytes)?;
        file.settle_on_disk()
    };
    write().map_err(|source| Error::Save {
        path: path.to_owned(),
        source,
    })
}

/// Whether a checkpoint can be written there, told before there is one.
pub fn check(path: &Path) -> Result<(), Error> {
    let new = NewFile::create(path).map(drop);
    new.map_err(|source| Error::write(path, source))
}

fn encode(
    state: &State,
    groups: &[Group],
    identity: &Identity,
) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut tensors = Vec::new();
    let of = |group: &str, parameter: &Parameter| Tensor {
        name: format!("{group}/{}", parameter.name),
        dtype: parameter.dtype(),
        shape: parameter.shape.clone(),
        bytes: parameter.bytes().to_vec(),
    };
    let each = state.parameters.list.iter().zip(groups);
    for ((parameter, group), memory) in each.zip(&state.memory.of) {
        tensors.push(of("parameters", parameter));
        for (name, values) in group.algorithm.memories().iter().zip(memory) {
            tensors.push(Tensor {
                dtype: Dtype::F32,
                bytes: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                ..of(name, parameter)
            });
        }
    }
    for parameter in state.best.iter().flat_map(|best| &best.list) {
        tensors.push(of("best", parameter));
    }
    let body = serde_json::to_string(&Body {
        identity: identity.clone(),
        progress: state.progress.clone(),
    })?;
    let entry = Entry {
        version: VERSION,
        digest: digest(&body, &mut tensors),
        body,
    };
    // One entry alone: those of a map have no order.
    let metadata = [(ENTRY.to_owned(), serde_json::to_string(&entry)?)];
    let views = tensors.iter().map(|tensor| {
        let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes)?;
        Ok((tensor.name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
    Ok(serialize(views, Some(metadata.into()))?)
}

fn digest(body: &str, tensors: &mut [Tensor]) -> String {
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let mut pieces = vec![body.as_bytes().to_vec()];
    for tensor in tensors {
        let about = format!("{} {:?} {:?}", tensor.name, tensor.dtype, tensor.shape);
        pieces.push(about.into_bytes());
        pieces.push(tensor.bytes.clone());
    }
    fingerprint::of(pieces.iter().map(Vec::as_slice))
}

/// Reads the state of a training of this identity; `now` is one of it that has just begun.
pub fn load(
    path: &Path,
    groups: &[Group],
    identity: &Identity,
    now: &State,
) -> Result<State, Error> {
    let bytes = fs::read(path).map_err(|source| Error::read(path, source))?;
    decode(&bytes, groups, identity, now).map_err(|reason| Error::Checkpoint {
        path: path.to_owned(),
        reason,
    })
}

fn decode(
    bytes: &[u8],
    groups: &[Group],
    identity: &Identity,
    now: &State,
) -> Result<State, String> {
    let damaged = |what: &dyn std::fmt::Display| format!("it is damaged: {what}");
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error))?;
    let entry = metadata
        .metadata()
        .as_ref()
        .and_then(|entries| entries.get(ENTRY));
    let Some(entry) = entry else {
        return Err("it is not a checkpoint: its metadata has no `cohort.checkpoint`".to_owned());
    };
    let entry: Entry = serde_json::from_str(entry).map_err(|error| damaged(&error))?;
    if entry.version != VERSION {
        let found = entry.version;
        return Err(format!(
            "it is of version {found}, and this program reads version {VERSION}"
        ));
    }
    let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(&error))?;
    let tensor = |(name, view): (&str, TensorView<'_>)| Tensor {
        name: name.to_owned(),
        dtype: view.dtype(),
        shape: view.shape().to_vec(),
        bytes: view.data().to_vec(),
    };
    let mut tensors: Vec<Tensor> = file.iter().map(tensor).collect();
    let found = digest(&entry.body, &mut tensors);
    if found != entry.digest {
        return Err(damaged(&format!(
            "the digest of its contents should be {}, and is {}",
            fingerprint::short(&entry.digest),
            fingerprint::short(&found)
        )));
    }
    let body: Body = serde_json::from_str(&entry.body).map_err(|error| damaged(&error))?;
    let mut tensors: BTreeMap<String, Tensor> = tensors
        .into_iter()
        .map(|tensor| (tensor.name.clone(), tensor))
        .collect();
    let differences = compare(&body.identity, identity, &tensors, &now.parameters);
    if !differences.is_empty() {
        return Err(format!(
            "it is of another training:\n  {}",
            differences.join("\n  ")
        ));
    }

    let mut state = now.clone();
    state.progress = body.progress;
    state.parameters = take_all(&mut tensors, "parameters", &now.parameters)?;
    let each = now.parameters.list.iter().zip(groups);
    for ((parameter, group), memory) in each.zip(&mut state.memory.of) {
        for (name, values) in group.algorithm.memories().iter().zip(memory) {
            let like = Parameter {
                data: Data::F32(Vec::new()),
                ..parameter.clone()
            };
            if let Data::F32(found) = take(&mut tensors, name, &like)? {
                *values = found;
            }
        }
    }
    if state.progress.best.is_some() {
        state.best = Some(take_all(&mut tensors, "best", &now.parameters)?);
    }
    if state.progress.flowed.len() != now.parameters.list.len() {
        return Err(damaged(&"it is not of as many parameters as it says"));
    }
    match tensors.keys().next() {
        None => Ok(state),
        Some(name) => Err(damaged(&format!("nothing should be called `{name}`"))),
    }
}

/// What differs, each with what is there and what the checkpoint has.
fn compare(
    found: &Identity,
    expected: &Identity,
    tensors: &BTreeMap<String, Tensor>,
    parameters: &Parameters,
) -> Vec<String> {
    let mut differences = Vec::new();
    let none = "not given".to_owned();
    let names: std::collections::BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    for name in names {
        let (found, expected) = (
            found.get(name).unwrap_or(&none),
            expected.get(name).unwrap_or(&none),
        );
        if found != expected {
            differences.push(format!("{name}: expected {expected}, found {found}"));
        }
    }
    for parameter in &parameters.list {
        let found = match tensors.get(&format!("parameters/{}", parameter.name)) {
            Some(found) if found.dtype == parameter.dtype() && found.shape == parameter.shape => {
                continue;
            }
            Some(found) => describe(&format!("{:?}", found.dtype).to_lowercase(), &found.shape),
            None => "none".to_owned(),
        };
        let (name, expected) = (&parameter.name, parameter.describe());
        differences.push(format!(
            "parameter `{name}`: expected {expected}, found {found}"
        ));
    }
    differences
}

fn take_all(
    tensors: &mut BTreeMap<String, Tensor>,
    group: &str,
    like: &Parameters,
) -> Result<Parameters, String> {
    let list = like.list.iter().map(|parameter| {
        let data = take(tensors, group, parameter)?;
        Ok(Parameter {
            data,
            ..parameter.clone()
        })
    });
    Ok(Parameters {
        list: list.collect::<Result<_, String>>()?,
    })
}

fn take(
    tensors: &mut BTreeMap<String, Tensor>,
    group: &str,
    like: &Parameter,
) -> Result<Data, String> {
    let name = format!("{group}/{}", like.name);
    let fits = |tensor: &Tensor| tensor.dtype == like.dtype() && tensor.shape == like.shape;
    let Some(tensor) = tensors.remove(&name).filter(fits) else {
        return Err(format!(
            "it is damaged: expected `{name}` of {}, found none",
            like.describe()
        ));
    };
    let (words, _) = tensor.bytes.as_chunks::<4>();
    Ok(match like.data {
        Data::F32(_) => Data::F32(words.iter().map(|word| f32::from_le_bytes(*word)).collect()),
        Data::I32(_) => Data::I32(words.iter().map(|word| i32::from_le_bytes(*word)).collect()),
        Data::Bool(_) => Data::Bool(tensor.bytes.iter().map(|byte| *byte != 0).collect()),
    })
}
