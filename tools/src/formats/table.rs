//! Results as a table, and as the bytes of a file that has it.

use arrow_array::RecordBatch;
use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::output::arrow;
use cohort_runtime::io::output::columns::Columns;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::{Format, ipc, npz_write};

/// All results as a batch of Arrow, one row an instance.
pub fn batch(manifest: &Manifest, columns: &Columns) -> Result<RecordBatch, String> {
    let done = columns.instances.iter();
    let ids: Vec<String> = done.clone().map(|done| done.id.to_string()).collect();
    let errors: Vec<Option<(String, String)>> = done
        .map(|done| {
            let error = done.error.as_ref()?;
            Some((error.kind.to_owned(), error.message.clone()))
        })
        .collect();
    arrow::batch(manifest, &columns.columns, &ids, &errors)
}

/// All results as the bytes of a file.
pub fn write(format: Format, manifest: &Manifest, columns: &Columns) -> Result<Vec<u8>, String> {
    match format {
        Format::Lines => Err("lines are not a table".to_owned()),
        Format::Npy => npz_write::array(manifest, columns),
        Format::Npz => npz_write::archive(manifest, columns),
        Format::Arrow => ipc::file(&batch(manifest, columns)?),
        Format::Parquet => {
            let batch = batch(manifest, columns)?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .build();
            let write = || {
                let mut writer =
                    ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
                writer.write(&batch)?;
                writer.into_inner()
            };
            write().map_err(|error: parquet::errors::ParquetError| error.to_string())
        }
    }
}
