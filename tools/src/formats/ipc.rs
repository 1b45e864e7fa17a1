//! Arrow's IPC: a stream of messages, which a file has between a mark and an index.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;

use super::damage::reading;

/// What a file begins with, and the bytes to its stream.
const MARK: &[u8] = b"ARROW1\0\0";

/// The batches of a stream or of a file, each checked to the last value.
pub fn decode(bytes: Buffer) -> Result<Vec<RecordBatch>, String> {
    reading(|| decode_all(bytes))?
}

fn decode_all(mut bytes: Buffer) -> Result<Vec<RecordBatch>, String> {
    let is_file = bytes.starts_with(MARK);
    if is_file {
        bytes = bytes.slice(MARK.len());
    }
    // It allocates what comes, and never what a length in it says.
    let mut decoder = StreamDecoder::new();
    let mut batches = Vec::new();
    let text = |error: ArrowError| error.to_string();
    loop {
        match decoder.decode(&mut bytes) {
            Ok(Some(batch)) => {
                for column in batch.columns() {
                    column.to_data().validate_full().map_err(text)?;
                }
                batches.push(batch);
            }
            Ok(None) => break,
            // Behind the end of its stream, a file has its index.
            Err(_) if is_file && decoder.finish().is_ok() => break,
            Err(error) => return Err(text(error)),
        }
    }
    decoder.finish().map_err(text)?;
    match decoder.schema() {
        Some(_) => Ok(batches),
        None => Err("it has no schema".to_owned()),
    }
}

/// A stream of one batch.
pub fn stream(batch: &RecordBatch) -> Result<Vec<u8>, String> {
    let write = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(batch)?;
        writer.into_inner()
    };
    write().map_err(|error: ArrowError| error.to_string())
}

/// A file of one batch.
pub fn file(batch: &RecordBatch) -> Result<Vec<u8>, String> {
    let write = || {
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(batch)?;
        writer.into_inner()
    };
    write().map_err(|error: ArrowError| error.to_string())
}
