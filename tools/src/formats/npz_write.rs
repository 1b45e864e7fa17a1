//! Results as arrays of NumPy: `output`, or `output_0` and so on, laid out as arguments are ([`super::npz`]),
//! with `id`, and `error`, whose texts are empty where there is a result.

use std::io::{Cursor, Write};

use cohort_runtime::abi::manifest::{Elem, Manifest, Type};
use cohort_runtime::io::output::columns::{Column, Columns, parts};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::numbers::{Numbers, numbers};

const NO_FORM: &str =
    "results of data types, tuples within arrays and texts have no form in NumPy's files";

/// An `.npz` of all results.
pub fn archive(manifest: &Manifest, columns: &Columns) -> Result<Vec<u8>, String> {
    let parts = parts(&manifest.result);
    let mut files = Vec::new();
    for (number, ((ty, _), column)) in parts.iter().zip(&columns.columns).enumerate() {
        let name = match parts.len() {
            1 => "output".to_owned(),
            _ => format!("output_{number}"),
        };
        part(manifest, ty, column, columns, &name, &mut files)?;
    }
    let done = columns.instances.iter();
    let ids: Result<Vec<i64>, _> = done.clone().map(|done| done.id.parse()).collect();
    files.push((
        "id".to_owned(),
        match ids {
            Ok(ids) => integers(&ids, &[ids.len() as u64]),
            Err(_) => {
                let id = |id: &str| serde_json::from_str(id).unwrap_or_else(|_| id.to_owned());
                texts(&done.clone().map(|done| id(&done.id)).collect::<Vec<_>>())
            }
        },
    ));
    let errors: Vec<String> = done
        .map(|done| match &done.error {
            Some(error) => format!("{}: {}", error.kind, error.message),
            None => String::new(),
        })
        .collect();
    files.push(("error".to_owned(), texts(&errors)));
    let write = || {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(true);
        for (name, content) in &files {
            archive.start_file(format!("{name}.npy"), options)?;
            archive.write_all(content)?;
        }
        archive.finish()
    };
    let written = write().map_err(|error: zip::result::ZipError| error.to_string());
    written.map(Cursor::into_inner)
}

/// An `.npy` of all results, which are tensors of one shape.
pub fn array(manifest: &Manifest, columns: &Columns) -> Result<Vec<u8>, String> {
    let failed = columns.instances.iter().find_map(|done| {
        let error = done.error.as_ref()?;
        Some(format!(
            "instance {}: {}: {}",
            done.id, error.kind, error.message
        ))
    });
    if let Some(failed) = failed {
        return Err(format!(
            "an .npy has no place for errors, and there is one: {failed}"
        ));
    }
    let (parts, [column]) = (parts(&manifest.result), columns.columns.as_slice()) else {
        return Err("an .npy has one array, and the result several parts; use an .npz".to_owned());
    };
    let mut files = Vec::new();
    part(manifest, parts[0].0, column, columns, "output", &mut files)?;
    match files.len() {
        1 => Ok(files.remove(0).1),
        _ => Err("an .npy has no place for results of different shapes; use an .npz".to_owned()),
    }
}

/// Appends the arrays of a part.
fn part(
    manifest: &Manifest,
    ty: &Type,
    column: &Column,
    columns: &Columns,
    name: &str,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), String> {
    let Numbers { elem, dims } = numbers(manifest, ty).ok_or_else(|| NO_FORM.to_owned())?;
    let count = columns.instances.len();
    let known: Vec<u64> = dims.iter().copied().flatten().collect();
    if known.len() == dims.len() {
        // A failed one has no elements, and its place is zeros.
        let size = known.iter().product::<u64>() as usize * elem.bytes();
        let mut bytes = Vec::with_capacity(size * count);
        for instance in 0..count {
            let begin = bytes.len();
            bytes.extend_from_slice(column.get(instance).0);
            bytes.resize(begin + size, 0);
        }
        let shape = [&[count as u64], known.as_slice()].concat();
        files.push((name.to_owned(), npy(descr(elem), &shape, &bytes)));
        return Ok(());
    }
    let shapes = (0..count).map(|instance| {
        let mut words = column.get(instance).1.iter().copied();
        let lengths = dims
            .iter()
            .map(|dim| dim.unwrap_or_else(|| words.next().unwrap_or(0)));
        lengths.collect::<Vec<u64>>()
    });
    if dims[0].is_none() && known.len() + 1 == dims.len() {
        let mut ends = vec![0_i64];
        for shape in shapes {
            ends.push(ends[ends.len() - 1] + shape[0] as i64);
        }
        let rows = ends[ends.len() - 1] as u64;
        let shape = [&[rows], known.as_slice()].concat();
        files.push((name.to_owned(), npy(descr(elem), &shape, &column.bytes)));
        let ends = integers(&ends, &[ends.len() as u64]);
        files.push((format!("{name}.offsets"), ends));
        return Ok(());
    }
    let shapes: Vec<i64> = shapes.flatten().map(|length| length as i64).collect();
    let elements = (column.bytes.len() / elem.bytes()) as u64;
    files.push((
        name.to_owned(),
        npy(descr(elem), &[elements], &column.bytes),
    ));
    let shapes = integers(&shapes, &[count as u64, dims.len() as u64]);
    files.push((format!("{name}.shapes"), shapes));
    Ok(())
}

fn descr(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "<f4",
        Elem::I32 => "<i4",
        Elem::Bool => "|b1",
    }
}

fn integers(values: &[i64], shape: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    npy("<i8", shape, &bytes)
}

/// Texts as NumPy has them: of one length, in UTF-32, with zeros behind.
fn texts(texts: &[String]) -> Vec<u8> {
    let longest = texts.iter().map(|text| text.chars().count()).max();
    let longest = longest.unwrap_or(0).max(1);
    let mut bytes = Vec::new();
    for text in texts {
        let begin = bytes.len();
        bytes.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes()));
        bytes.resize(begin + 4 * longest, 0);
    }
    npy(&format!("<U{longest}"), &[texts.len() as u64], &bytes)
}

/// The bytes of an `.npy`, of version 1.0: its header and its elements.
fn npy(descr: &str, shape: &[u64], elements: &[u8]) -> Vec<u8> {
    let dims: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    // With what comes before it, it has a multiple of 64 bytes, and ends a line.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(10 + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(elements);
    bytes
}
