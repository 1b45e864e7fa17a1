//! Weights: safetensors files, and which of their tensors a program wants.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cohort_frontend::program::{Elem, Param, Program, Stored, are_own};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use crate::error::WeightsError;
use crate::tensor::{Data, Tensor};
use crate::value::Value;

/// Reads a safetensors file.
pub fn read_weights(path: &Path) -> Result<BTreeMap<String, Tensor>, WeightsError> {
    let bytes = fs::read(path).map_err(|source| WeightsError::Read {
        path: path.display().to_string(),
        source,
    })?;
    parse_weights(&bytes)
}

/// The tensors in the bytes of a safetensors file, floats as f64.
pub fn parse_weights(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, WeightsError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let bytes = view.data();
        let data = match view.dtype() {
            Dtype::F32 => Data::F32(numbers(bytes, |b| f64::from(f32::from_le_bytes(b)))),
            Dtype::F16 => Data::F32(numbers(bytes, |b| f16::from_le_bytes(b).to_f64())),
            Dtype::BF16 => Data::F32(numbers(bytes, |b| bf16::from_le_bytes(b).to_f64())),
            Dtype::F64 => {
                let values = numbers(bytes, f64::from_le_bytes);
                let inexact = |x: &&f64| !x.is_nan() && f64::from(**x as f32) != **x;
                if let Some(value) = values.iter().find(inexact) {
                    return Err(inexact_number(name, value, "f32"));
                }
                Data::F32(values)
            }
            Dtype::I64 => {
                let values = numbers(bytes, i64::from_le_bytes);
                let narrow = |value: i64| {
                    i32::try_from(value).map_err(|_| inexact_number(name, &value, "i32"))
                };
                Data::I32(values.into_iter().map(narrow).collect::<Result<_, _>>()?)
            }
            Dtype::I32 => Data::I32(numbers(bytes, i32::from_le_bytes)),
            Dtype::BOOL => Data::Bool(bytes.iter().map(|&byte| byte != 0).collect()),
            other => {
                let (name, found) = (name.to_string(), other.to_string());
                return Err(WeightsError::UnsupportedType { name, found });
            }
        };
        tensors.insert(
            name.to_string(),
            Tensor {
                shape: view.shape().to_vec(),
                data,
                doubtful: Vec::new(),
            },
        );
    }
    Ok(tensors)
}

fn inexact_number(name: &str, value: &dyn std::fmt::Debug, elem: &'static str) -> WeightsError {
    WeightsError::Inexact {
        name: name.to_string(),
        value: format!("{value:?}"),
        elem,
    }
}

/// Elements and shape of every tensor: what program dims are bound from.
pub fn weight_shapes(weights: &BTreeMap<String, Tensor>) -> BTreeMap<String, (Elem, Vec<u64>)> {
    let shape = |tensor: &Tensor| tensor.shape.iter().map(|&length| length as u64).collect();
    weights
        .iter()
        .map(|(name, tensor)| (name.clone(), (tensor.elem(), shape(tensor))))
        .collect()
}

/// The names of the tensors that the program does not declare.
pub fn unused_weights(program: &Program, weights: &BTreeMap<String, Tensor>) -> Vec<String> {
    let own = program_has(program, weights);
    let is_used = |name: &String| {
        program.params.iter().any(|param| match &param.stored {
            Some(stored) if !own => stored.index_of(name).is_some_and(|index| {
                let lengths = index.iter().zip(&param.shape);
                lengths.into_iter().all(|(number, length)| number < length)
            }),
            _ => param.name == *name,
        })
    };
    weights
        .keys()
        .filter(|name| !is_used(name))
        .cloned()
        .collect()
}

/// Whether the weights have the parameters by the program's names.
fn program_has(program: &Program, weights: &BTreeMap<String, Tensor>) -> bool {
    let names = program.params.iter();
    let names = names.map(|param| (param.name.as_str(), param.stored.as_ref()));
    are_own(names, weights)
}

/// What the weights have of the program's parameters, by their names and as they are declared. Those that
/// are missing are left out.
pub fn named_weights(
    program: &Program,
    weights: &BTreeMap<String, Tensor>,
) -> Result<BTreeMap<String, Tensor>, WeightsError> {
    let own = program_has(program, weights);
    let mut named = BTreeMap::new();
    for param in &program.params {
        let tensor = match param.stored.as_ref().filter(|_| !own) {
            None => weights.get(&param.name).cloned(),
            Some(stored) => joined(stored, param, weights)?,
        };
        if let Some(tensor) = tensor {
            named.insert(param.name.clone(), tensor);
        }
    }
    Ok(named)
}

/// One parameter of a tensor for each of its first indices; none where the weights have none of them.
fn joined(
    stored: &Stored,
    param: &Param,
    weights: &BTreeMap<String, Tensor>,
) -> Result<Option<Tensor>, WeightsError> {
    if !weights.keys().any(|name| stored.index_of(name).is_some()) {
        return Ok(None);
    }
    let axes = stored.axes();
    let shape: Vec<usize> = param.shape.iter().map(|length| *length as usize).collect();
    let mut each = shape[axes..].to_vec();
    if let (true, [.., rows, columns]) = (stored.transposed, each.as_mut_slice()) {
        std::mem::swap(rows, columns);
    }
    let mut data = empty(param.elem);
    for name in stored.names(&param.shape) {
        let Some(tensor) = weights.get(&name) else {
            return Err(WeightsError::Missing { name });
        };
        check(&name, tensor, param.elem, &each)?;
        let order = order(&each, stored.transposed);
        match (&mut data, &tensor.data) {
            (Data::F32(all), Data::F32(one)) => all.extend(order.map(|place| one[place])),
            (Data::I32(all), Data::I32(one)) => all.extend(order.map(|place| one[place])),
            (Data::Bool(all), Data::Bool(one)) => all.extend(order.map(|place| one[place])),
            _ => {}
        }
    }
    Ok(Some(Tensor {
        shape,
        data,
        doubtful: Vec::new(),
    }))
}

/// The place in the file of each element, in the program's order.
fn order(shape: &[usize], transposed: bool) -> impl Iterator<Item = usize> {
    let count: usize = shape.iter().product();
    let (rows, columns) = match *shape {
        [.., rows, columns] if transposed => (rows, columns),
        _ => (1, count.max(1)),
    };
    (0..count).map(move |place| {
        let (matrix, within) = (place / (rows * columns), place % (rows * columns));
        matrix * rows * columns + (within % rows) * columns + within / rows
    })
}

/// The value of each of the program's parameters.
pub(crate) fn bind(
    program: &Program,
    weights: BTreeMap<String, Tensor>,
) -> Result<Vec<Value>, WeightsError> {
    let mut weights = named_weights(program, &weights)?;
    let mut params = Vec::new();
    for param in &program.params {
        let name = param.name.clone();
        let Some(tensor) = weights.remove(&name) else {
            return Err(WeightsError::Missing { name });
        };
        let shape: Vec<usize> = param.shape.iter().map(|&length| length as usize).collect();
        check(&name, &tensor, param.elem, &shape)?;
        params.push(Value::tensor(tensor));
    }
    Ok(params)
}

fn check(name: &str, tensor: &Tensor, elem: Elem, shape: &[usize]) -> Result<(), WeightsError> {
    if tensor.elem() == elem && tensor.shape == shape {
        return Ok(());
    }
    let declared = Tensor {
        shape: shape.to_vec(),
        data: empty(elem),
        doubtful: Vec::new(),
    };
    Err(WeightsError::Mismatch {
        name: name.to_owned(),
        expected: declared.describe(),
        found: tensor.describe(),
    })
}

fn empty(elem: Elem) -> Data {
    match elem {
        Elem::F32 => Data::F32(Vec::new()),
        Elem::I32 => Data::I32(Vec::new()),
        Elem::Bool => Data::Bool(Vec::new()),
    }
}

fn numbers<const SIZE: usize, T>(bytes: &[u8], read: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<SIZE>();
    chunks.iter().map(|chunk| read(*chunk)).collect()
}
