//! Rows of a file as instances.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use cohort_runtime::Error;
use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::feed::{Supplied, Supply};
use cohort_runtime::io::input::{ArrowInstances, Builder, Inputs};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::damage::reading;
use super::{Format, footer, ipc, npz};
use crate::exit::Stop;

/// Rows that Parquet decodes at once.
const ROWS: usize = 1024;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>>>;

pub struct Rows<'m> {
    path: PathBuf,
    builder: Builder<'m>,
    batches: Batches,
    /// The batch at hand, and its next row.
    current: Option<(ArrowInstances, usize)>,
    /// Instances so far.
    number: u64,
    /// Instances and bytes that a chunk has at most.
    most: (usize, u64),
    spare: Vec<Inputs>,
}

impl<'m> Rows<'m> {
    pub fn open(
        manifest: &'m Manifest,
        max_memory: u64,
        path: &Path,
        most: (usize, u64),
    ) -> Result<Rows<'m>, Stop> {
        let bytes = crate::text::read(path)?;
        let batches = batches(manifest, path, bytes);
        Ok(Rows {
            batches: batches.map_err(|problem| Stop::usage(cannot_read(path, &problem)))?,
            path: path.to_owned(),
            builder: Builder::new(manifest, max_memory),
            current: None,
            number: 0,
            most,
            spare: Vec::new(),
        })
    }

    /// Goes to the next batch; whether there is one.
    fn advance(&mut self) -> Result<bool, Error> {
        let next = reading(|| self.batches.next());
        let Some(batch) = next.unwrap_or_else(|damaged| Some(Err(damaged))) else {
            return Ok(false);
        };
        let instances =
            batch.and_then(|batch| ArrowInstances::new(self.builder.manifest(), &batch));
        let instances =
            instances.map_err(|problem| Error::Usage(cannot_read(&self.path, &problem)))?;
        self.current = Some((instances, 0));
        Ok(true)
    }
}

fn cannot_read(path: &Path, problem: &str) -> String {
    format!("cannot read {}: {problem}", path.display())
}

fn batches(manifest: &Manifest, path: &Path, bytes: Vec<u8>) -> Result<Batches, String> {
    match Format::of(path) {
        Format::Lines => Err("lines are not a table".to_owned()),
        Format::Npy => Ok(one(npz::of_array(manifest, &bytes)?)),
        Format::Npz => Ok(one(npz::of_archive(manifest, &bytes)?)),
        Format::Arrow => Ok(Box::new(ipc::decode(bytes.into())?.into_iter().map(Ok))),
        Format::Parquet => {
            footer::check(&bytes)?;
            let open = || {
                let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))?;
                builder.with_batch_size(ROWS).build()
            };
            let reader = reading(open)?.map_err(|error| error.to_string())?;
            Ok(Box::new(
                reader.map(|batch| batch.map_err(|error| error.to_string())),
            ))
        }
    }
}

fn one(batch: RecordBatch) -> Batches {
    Box::new(std::iter::once(Ok(batch)))
}

impl Supply for Rows<'_> {
    fn next(&mut self, slot: usize, _may_wait: bool) -> Result<Supplied, Error> {
        let mut inputs = self.spare.pop().unwrap_or_default();
        inputs.reset(self.builder.manifest(), slot);
        while inputs.len() < self.most.0 && inputs.bytes() < self.most.1 {
            if let Some((rows, next)) = &mut self.current
                && *next < rows.count()
            {
                self.number += 1;
                rows.build(&mut self.builder, *next, self.number, &mut inputs);
                *next += 1;
            } else if !self.advance()? {
                break;
            }
        }
        Ok(match inputs.is_empty() {
            true => Supplied::End,
            false => Supplied::Instances(Box::new(inputs)),
        })
    }

    fn done(&mut self, inputs: Inputs) {
        self.spare.push(inputs);
    }
}
