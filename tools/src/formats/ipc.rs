//! Arrow's IPC: a stream of messages, which a file has between a mark and an index.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;

use super::damage::reading;

/// What a file begins with.
const MARK: &[u8] = b"ARROW1\0\0";

/// The batches of a stream or of a file, each checked to the last value.
pub fn decode(bytes: Buffer) -> Result<Vec<RecordBatch>, String> {
    reading(|| decode_all(bytes))?
}

fn decode_all(mut bytes: Buffer) -> Result<Vec<RecordBatch>, String> {
    let is_file = bytes.starts_with(MARK);
    if is_file {
        // Then comes its stream, which some writers align to more than eight bytes.
        let padding = bytes[MARK.len()..].iter().take_while(|byte| **byte == 0);
        let padding = padding.count() / MARK.len() * MARK.len();
        bytes = bytes.slice(MARK.len() + padding);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, Int32Array, RecordBatch};
    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let numbers = Arc::new(Int32Array::from(vec![3, 1, 4]));
        let field = Field::new("x", numbers.data_type().clone(), false);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![numbers]).expect("a batch");
        for bytes in [stream(&batch), file(&batch)] {
            let bytes = bytes.expect("it is written");
            assert_eq!(decode(bytes.into()).as_deref(), Ok(&[batch.clone()][..]));
        }
    }
}
