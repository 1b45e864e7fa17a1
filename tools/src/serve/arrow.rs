//! Instances as a stream of Arrow's IPC: a row is one.

use std::panic::AssertUnwindSafe;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::input::{ArrowInstances, Builder, Inputs};
use cohort_runtime::output::arrow::batch;
use cohort_runtime::output::columns::Columns;
use hyper::body::Bytes;

use super::infer::work;
use super::refusal::Refusal;

pub const CONTENT_TYPE: &str = "application/vnd.apache.arrow.stream";

/// The rows of all batches of a stream.
pub struct Table {
    batches: Vec<ArrowInstances>,
    /// Instances in each batch and in those before it.
    ends: Vec<usize>,
}

impl Table {
    pub fn read(manifest: &Manifest, body: &Bytes) -> Result<Table, Refusal> {
        let wrong = |what: String| Refusal::bad(format!("the body is no stream of Arrow: {what}"));
        // The decoder trusts what it reads in places.
        let decoded =
            std::panic::catch_unwind(AssertUnwindSafe(|| work(body.len(), || decode(body))));
        let batches = match decoded {
            Ok(batches) => batches.map_err(wrong)?,
            Err(_) => return Err(wrong("it is damaged".to_owned())),
        };
        let mut table = Table {
            batches: Vec::new(),
            ends: Vec::new(),
        };
        for batch in &batches {
            let instances = ArrowInstances::new(manifest, batch).map_err(Refusal::bad)?;
            let count = table.count().checked_add(instances.count());
            table.ends.push(count.unwrap_or(usize::MAX));
            table.batches.push(instances);
        }
        Ok(table)
    }

    pub fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The instance of a row; without an id of its own it has its number, from 1 on.
    pub fn instance(&self, manifest: &Manifest, max_memory: u64, row: usize) -> Inputs {
        let at = self.ends.partition_point(|end| *end <= row);
        let before = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut inputs = Inputs::default();
        inputs.reset(manifest, 0);
        let mut builder = Builder::new(manifest, max_memory);
        self.batches[at].build(&mut builder, row - before, row as u64 + 1, &mut inputs);
        inputs
    }
}

fn decode(body: &Bytes) -> Result<Vec<RecordBatch>, String> {
    let mut bytes = Buffer::from(body.clone());
    // It allocates what comes, and never what a length in it says.
    let mut decoder = StreamDecoder::new();
    let mut batches = Vec::new();
    while let Some(batch) = decoder.decode(&mut bytes).map_err(|e| e.to_string())? {
        for column in batch.columns() {
            let checked = column.to_data().validate_full();
            checked.map_err(|error| error.to_string())?;
        }
        batches.push(batch);
    }
    decoder.finish().map_err(|error| error.to_string())?;
    Ok(batches)
}

/// All results as a stream of one batch.
pub fn records(manifest: &Manifest, columns: &Columns) -> Result<Vec<u8>, Refusal> {
    let ids: Vec<String> = (columns.instances.iter())
        .map(|done| done.id.to_string())
        .collect();
    let errors: Vec<Option<(String, String)>> = (columns.instances.iter())
        .map(|done| {
            let error = done.error.as_ref()?;
            Some((error.kind.to_owned(), error.message.clone()))
        })
        .collect();
    work(columns.size(), || {
        let batch = batch(manifest, &columns.columns, &ids, &errors).map_err(|problem| {
            Refusal::new(hyper::StatusCode::NOT_ACCEPTABLE, "no_form", problem)
        })?;
        let write = || {
            let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(&batch)?;
            writer.into_inner()
        };
        write().map_err(|error: arrow_schema::ArrowError| Refusal::internal(error.to_string()))
    })
}
