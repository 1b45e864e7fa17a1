//! Instances as a stream of Arrow's IPC: a row is one.

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::input::{ArrowInstances, Builder, Inputs};
use cohort_runtime::io::output::columns::Columns;
use hyper::body::Bytes;

use super::infer::work;
use super::refusal::Refusal;
use crate::formats::{ipc, table};

pub const CONTENT_TYPE: &str = "application/vnd.apache.arrow.stream";

/// The rows of all batches of a stream.
pub struct Table {
    batches: Vec<ArrowInstances>,
    /// Instances in each batch and in those before it.
    ends: Vec<usize>,
}

impl Table {
    pub fn read(manifest: &Manifest, body: &Bytes) -> Result<Table, Refusal> {
        let wrong =
            |what: String| Refusal::bad(format!("the body is not a stream of Arrow: {what}"));
        let decoded = work(body.len(), || ipc::decode(body.clone().into()));
        let batches = decoded.map_err(wrong)?;
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

/// All results as a stream of one batch.
pub fn records(manifest: &Manifest, columns: &Columns) -> Result<Vec<u8>, Refusal> {
    work(columns.size(), || {
        let batch = table::batch(manifest, columns).map_err(|problem| {
            Refusal::new(hyper::StatusCode::NOT_ACCEPTABLE, "no_form", problem)
        })?;
        ipc::stream(&batch).map_err(Refusal::internal)
    })
}
