//! Tables of Arrow, by the PyCapsule interface: whatever has `__arrow_c_stream__` or `__arrow_c_array__` comes
//! in, and results go out through the same.

use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, StructArray, make_array};
use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::input::{ArrowInstances, Builder, Inputs};
use cohort_runtime::io::output::arrow::batch;
use cohort_runtime::io::output::columns::Column;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyCapsule;

use crate::flat::Instances;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// The rows of all batches of a table.
pub struct Table {
    batches: Vec<ArrowInstances>,
    /// Instances in each batch and in those before it.
    ends: Vec<usize>,
}

impl Table {
    pub fn read(manifest: &Manifest, table: &Bound<'_, PyAny>) -> PyResult<Table> {
        let batches = match table.hasattr("__arrow_c_stream__")? {
            true => of_stream(&table.call_method0("__arrow_c_stream__")?)?,
            false => vec![of_array(&table.call_method0("__arrow_c_array__")?)?],
        };
        let mut read = Table {
            batches: Vec::new(),
            ends: Vec::new(),
        };
        for batch in &batches {
            // Nothing guarantees that the producer made a valid array.
            for column in batch.columns() {
                let checked = column.to_data().validate_full();
                checked.map_err(|error| PyValueError::new_err(error.to_string()))?;
            }
            let instances = ArrowInstances::new(manifest, batch).map_err(PyTypeError::new_err)?;
            read.ends.push(read.count() + instances.count());
            read.batches.push(instances);
        }
        Ok(read)
    }
}

impl Instances for Table {
    fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn build(&self, builder: &mut Builder<'_>, instance: usize, inputs: &mut Inputs) {
        let at = self.ends.partition_point(|end| *end <= instance);
        let before = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        // An id is counted from 1, as the lines of a file are.
        self.batches[at].build(builder, instance - before, instance as u64 + 1, inputs);
    }
}

fn of_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    let stream = pointer::<FFI_ArrowArrayStream>(capsule, STREAM)?;
    // SAFETY: a capsule of that name has such a struct, which is moved out of it.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream) };
    let wrong = |error: arrow_schema::ArrowError| PyValueError::new_err(error.to_string());
    let batches: Result<Vec<RecordBatch>, _> = reader.map_err(wrong)?.collect();
    batches.map_err(wrong)
}

fn of_array(capsules: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.extract()?;
    let schema = pointer::<FFI_ArrowSchema>(&schema, SCHEMA)?;
    let array = pointer::<FFI_ArrowArray>(&array, ARRAY)?;
    // SAFETY: capsules of these names have such structs. The array is moved out of its; the schema stays.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array), &*schema) };
    let data = data.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let array = make_array(data);
    let rows = array.as_any().downcast_ref::<StructArray>();
    let rows = rows.filter(|rows| rows.null_count() == 0);
    let rows = rows.ok_or_else(|| {
        PyTypeError::new_err(
            "an array of Arrow whose elements are instances is one of structs, none null",
        )
    })?;
    Ok(RecordBatch::from(rows))
}

fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let capsule = capsule.downcast::<PyCapsule>()?;
    if capsule.name()? != Some(name) {
        let problem = format!("expected a capsule of {}", name.to_string_lossy());
        return Err(PyTypeError::new_err(problem));
    }
    Ok(capsule.pointer().cast())
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

fn pairs(bytes: &[u8]) -> Vec<[usize; 2]> {
    let numbers: Vec<usize> = numbers(bytes).map(|number| number as usize).collect();
    numbers.as_chunks::<2>().0.to_vec()
}

/// Results as a stream of one batch: bytes, words and ends of each column, ids, and errors by place.
pub fn stream<'py>(
    py: Python<'py>,
    manifest: &Manifest,
    columns: &[[PyBackedBytes; 3]],
    ids: &[String],
    errors: &[Option<(String, String)>],
) -> PyResult<Bound<'py, PyCapsule>> {
    let column = |[bytes, words, ends]: &[PyBackedBytes; 3]| Column {
        bytes: bytes.to_vec(),
        words: numbers(words).collect(),
        ends: pairs(ends),
    };
    let columns: Vec<Column> = columns.iter().map(column).collect();
    let batch = batch(manifest, &columns, ids, errors).map_err(PyTypeError::new_err)?;
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    PyCapsule::new(
        py,
        FFI_ArrowArrayStream::new(Box::new(reader)),
        Some(STREAM.to_owned()),
    )
}
