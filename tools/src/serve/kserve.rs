//! The protocol of KServe, version 2: a request is one instance, its inputs are the arguments of `main`.
//!
//! What is numbers of a shape is a tensor; what is not (a value of a data type, a tuple, a text) is a tensor of
//! one `BYTES`, which is the value's JSON, or the text itself.

use std::borrow::Cow;

use cohort_runtime::abi::manifest::{Elem, Manifest, Type};
use cohort_runtime::io::output::columns::{Columns, parts};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::signature::{example, text};
use crate::formats::numbers::{Numbers, numbers};

const BYTES: &str = "BYTES";
/// The program has no versions of its own.
const VERSION: &str = "1";

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    inputs: Vec<Tensor<'a>>,
}

#[derive(Deserialize)]
struct Tensor<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    shape: Vec<u64>,
    #[serde(borrow)]
    datatype: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// The request as the line of an instance.
pub fn line(manifest: &Manifest, body: &[u8]) -> Result<String, Refusal> {
    let wrong = |error: serde_json::Error| {
        Refusal::bad(format!("expected an inference request of KServe: {error}"))
    };
    let request: Request<'_> = serde_json::from_slice(body).map_err(wrong)?;
    let mut members = Vec::new();
    if let Some(id) = request.id {
        members.push(format!("\"id\": {}", id.get()));
    }
    for input in &request.inputs {
        let argument = manifest.arguments.iter();
        let argument = argument
            .clone()
            .find(|argument| argument.name == input.name);
        let value = match argument {
            Some(argument) => value(manifest, &argument.ty, input)?,
            // The builder says what there is.
            None => "null".to_owned(),
        };
        members.push(format!("{}: {value}", json!(input.name)));
    }
    Ok(format!("{{{}}}", members.join(", ")))
}

/// A tensor as the value of an argument.
fn value(manifest: &Manifest, ty: &Type, input: &Tensor<'_>) -> Result<String, Refusal> {
    let wrong = |what: String| Refusal::bad(format!("input {}: {what}", input.name));
    let numbers = numbers(manifest, ty);
    let most_dims = numbers
        .as_ref()
        .map_or(1, |numbers| numbers.dims.len().max(1));
    if input.shape.len() > most_dims {
        return Err(wrong(format!(
            "expected a shape of at most {most_dims}, found one of {}",
            input.shape.len()
        )));
    }
    let elements =
        flatten(input.data.get(), most_dims).map_err(|error| wrong(error.to_string()))?;
    let mut shape = input.shape.clone();
    let count = shape.iter().copied().fold(1, u64::saturating_mul);
    if count != elements.len() as u64 {
        return Err(wrong(format!(
            "the shape {shape:?} has {count} elements, and the data {}",
            elements.len()
        )));
    }
    let expected = datatype(manifest, ty);
    if !is_taken(expected, &input.datatype) {
        return Err(wrong(format!(
            "expected the datatype {expected}, found {}",
            input.datatype
        )));
    }
    let Some(Numbers { dims, .. }) = numbers else {
        return single(ty, &elements).map_err(wrong);
    };
    // A tensor without dims is one of a single element to most clients.
    if dims.is_empty() && shape == [1] {
        shape.clear();
    }
    if count == 0 {
        // Without elements, only the dims tell what lists there are.
        return empty(&shape).ok_or_else(|| wrong("too many empty lists".to_owned()));
    }
    Ok(nest(&elements, &shape))
}

/// The value that one string holds.
fn single(ty: &Type, elements: &[&str]) -> Result<String, String> {
    let [element] = elements else {
        return Err("expected one element".to_owned());
    };
    if *ty == Type::Str {
        return Ok((*element).to_owned());
    }
    let not_json = |error: serde_json::Error| format!("expected the text of a JSON value: {error}");
    let inner: String = serde_json::from_str(element).map_err(not_json)?;
    let value: &RawValue = serde_json::from_str(&inner).map_err(not_json)?;
    Ok(value.get().to_owned())
}

/// Whether a client may write a tensor of one type as another.
fn is_taken(expected: &str, found: &str) -> bool {
    match expected {
        "FP32" => matches!(found, "FP16" | "BF16" | "FP32" | "FP64"),
        "INT32" => found.starts_with("INT") || found.starts_with("UINT"),
        _ => found == expected,
    }
}

/// All elements of lists that lie up to so deep in each other.
fn flatten(data: &str, depth: usize) -> Result<Vec<&str>, serde_json::Error> {
    let mut elements = Vec::new();
    let mut left = vec![(data, depth)];
    while let Some((text, depth)) = left.pop() {
        if depth > 0 && text.starts_with('[') {
            let inner: Vec<&RawValue> = serde_json::from_str(text)?;
            let inner = inner.iter().map(|element| (element.get(), depth - 1));
            left.extend(inner.rev());
        } else {
            elements.push(text);
        }
    }
    Ok(elements)
}

/// Lists of these lengths in each other, of as many elements.
fn nest(elements: &[&str], shape: &[u64]) -> String {
    let mut parts: Vec<String> = elements.iter().map(|text| (*text).to_owned()).collect();
    for length in shape.iter().rev() {
        let lists = parts.chunks((*length).max(1) as usize);
        parts = lists.map(|list| format!("[{}]", list.join(", "))).collect();
    }
    parts.pop().unwrap_or_default()
}

/// Lists that hold nothing in the end; none where there would be very many.
fn empty(shape: &[u64]) -> Option<String> {
    const MOST: u64 = 1 << 20;
    let outer = shape.iter().take_while(|length| **length > 0);
    let lists = outer.clone().copied().fold(1, u64::saturating_mul);
    let wrap =
        |inner: String, length: &u64| format!("[{}]", vec![inner; *length as usize].join(", "));
    let outer: Vec<u64> = outer.copied().collect();
    (lists <= MOST).then(|| outer.iter().rev().fold("[]".to_owned(), wrap))
}

fn datatype(manifest: &Manifest, ty: &Type) -> &'static str {
    match numbers(manifest, ty).map(|numbers| numbers.elem) {
        Some(Elem::F32) => "FP32",
        Some(Elem::I32) => "INT32",
        Some(Elem::Bool) => "BOOL",
        None => BYTES,
    }
}

/// The names of the parts of the result.
fn outputs(manifest: &Manifest) -> Vec<(String, &Type)> {
    let parts = parts(&manifest.result);
    let is_one = parts.len() == 1;
    let name = |number: usize| match is_one {
        true => "output".to_owned(),
        false => format!("output_{number}"),
    };
    let parts = parts.into_iter().enumerate();
    parts.map(|(number, (ty, _))| (name(number), ty)).collect()
}

/// The response to a request whose instance has this record.
pub fn response(
    manifest: &Manifest,
    model: &str,
    columns: &Columns,
    record: &[u8],
) -> Result<String, Refusal> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
        #[serde(borrow)]
        output: &'a RawValue,
    }
    let internal = |error: serde_json::Error| Refusal::internal(error.to_string());
    let record: Record<'_> = serde_json::from_slice(record).map_err(internal)?;
    let mut values = Vec::new();
    // Tuples are taken apart as columns are.
    let mut left = vec![(&manifest.result, record.output.get())];
    while let Some((ty, value)) = left.pop() {
        let Type::Tuple(types) = ty else {
            values.push(value);
            continue;
        };
        let inner: Vec<&RawValue> = serde_json::from_str(value).map_err(internal)?;
        let inner = inner.iter().map(|value| value.get());
        left.extend(types.iter().zip(inner).rev());
    }
    let mut tensors = Vec::new();
    for (((name, ty), value), column) in
        (outputs(manifest).iter().zip(values)).zip(&columns.columns)
    {
        let (shape, data) = match numbers(manifest, ty) {
            Some(Numbers { dims, .. }) => {
                let mut lengths = column.get(0).1.iter().copied();
                let dims = dims.iter().map(|dim| dim.or_else(|| lengths.next()));
                let mut shape: Vec<u64> = dims.flatten().collect();
                if shape.is_empty() {
                    shape.push(1);
                }
                let elements = flatten(value, shape.len()).map_err(internal)?;
                (shape, elements.join(", "))
            }
            None if **ty == Type::Str => (vec![1], value.to_owned()),
            None => (vec![1], json!(value).to_string()),
        };
        tensors.push(format!(
            "{{\"name\": {}, \"datatype\": \"{}\", \"shape\": {shape:?}, \"data\": [{data}]}}",
            json!(name),
            datatype(manifest, ty)
        ));
    }
    // An id is a string there.
    let id = match record.id.get() {
        id if id.starts_with('"') => id.to_owned(),
        id => json!(id).to_string(),
    };
    Ok(format!(
        "{{\"model_name\": {}, \"model_version\": \"{VERSION}\", \"id\": {id}, \"outputs\": [{}]}}\n",
        json!(model),
        tensors.join(", ")
    ))
}

/// What the server is.
pub fn server() -> Value {
    json!({"name": "batch-serve", "version": env!("CARGO_PKG_VERSION"), "extensions": []})
}

/// What the model takes and gives.
pub fn model(manifest: &Manifest, name: &str) -> Value {
    let tensor = |name: &str, ty: &Type| {
        let shape: Vec<i64> = match numbers(manifest, ty) {
            Some(Numbers { dims, .. }) if !dims.is_empty() => (dims.iter())
                .map(|dim| dim.map_or(-1, |dim| dim as i64))
                .collect(),
            _ => vec![1],
        };
        let datatype = datatype(manifest, ty);
        json!({"name": name, "datatype": datatype, "shape": shape, "type": text(manifest, ty)})
    };
    let arguments = manifest.arguments.iter();
    let inputs: Vec<Value> = arguments
        .map(|argument| tensor(&argument.name, &argument.ty))
        .collect();
    let outputs = outputs(manifest);
    let outputs: Vec<Value> = outputs.iter().map(|(name, ty)| tensor(name, ty)).collect();
    json!({
        "name": name,
        "versions": [VERSION],
        "platform": "cohort",
        "inputs": inputs,
        "outputs": outputs,
        "example": example(manifest),
    })
}
