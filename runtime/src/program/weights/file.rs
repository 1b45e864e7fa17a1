//! One safetensors file. Its header is read when it is opened, the tensors when they are needed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use safetensors::tensor::{Metadata, TensorInfo};

use crate::error::Error;
use crate::memory::AlignedBuffer;

/// The bytes of all tensors.
#[derive(Debug)]
enum Data {
    Read(AlignedBuffer),
    /// From there on.
    Shared(Arc<[u8]>, usize),
}

#[derive(Debug)]
pub struct WeightsFile {
    path: PathBuf,
    metadata: Metadata,
    /// Bytes of the tensors, which the file still has to give unless they are in `data`.
    length: usize,
    file: Option<File>,
    data: OnceLock<Data>,
}

/// No header is longer, says the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;

impl WeightsFile {
    /// Opens a file; a pipe is read to its end.
    pub fn open(path: &Path) -> Result<WeightsFile, Error> {
        let cannot_open = |source| Error::OpenWeights {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(cannot_open)?;
        let about = file.metadata().map_err(cannot_open)?;
        if !about.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(cannot_open)?;
            return WeightsFile::of(path, bytes.into());
        }
        let header = read_header(&mut file, about.len());
        let (metadata, length) = header.map_err(|reason| bad(path, reason))?;
        Ok(WeightsFile {
            path: path.to_owned(),
            metadata,
            length,
            file: Some(file),
            data: OnceLock::new(),
        })
    }

    /// What was read of a file, whose path is for messages.
    pub fn of(path: &Path, bytes: Arc<[u8]>) -> Result<WeightsFile, Error> {
        let header = read_header(&mut &bytes[..], bytes.len() as u64);
        let (metadata, length) = header.map_err(|reason| bad(path, reason))?;
        let start = bytes.len() - length;
        Ok(WeightsFile {
            path: path.to_owned(),
            metadata,
            length,
            file: None,
            data: OnceLock::from(Data::Shared(bytes, start)),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its header says of its tensors.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The bytes of one of its tensors.
    pub fn bytes_of(&self, tensor: &TensorInfo) -> Result<&[u8], Error> {
        let (begin, end) = tensor.data_offsets;
        // The metadata was checked: the length is that of the shape.
        let bytes = self.data()?.get(begin..end);
        bytes.ok_or_else(|| bad(&self.path, "it became shorter while it was read"))
    }

    /// The bytes of all tensors.
    fn data(&self) -> Result<&[u8], Error> {
        if let (None, Some(file)) = (self.data.get(), &self.file) {
            let data = read_data(&self.path, file, self.length)?;
            // Another thread may have been faster; it read the same bytes.
            let _ = self.data.set(Data::Read(data));
        }
        Ok(match self.data.get() {
            None => &[],
            Some(Data::Read(data)) => &data.bytes()[..self.length],
            Some(Data::Shared(bytes, start)) => &bytes[*start..],
        })
    }
}

pub fn bad(path: &Path, reason: impl ToString) -> Error {
    Error::BadWeights {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Reads the header of a file of `length` bytes; gives it and how many bytes of tensors follow.
fn read_header(file: &mut impl Read, length: u64) -> Result<(Metadata, usize), String> {
    if length == 0 {
        return Err("the file is empty".to_owned());
    }
    let mut size = [0; 8];
    let cannot_read = |error: io::Error| format!("its header cannot be read: {error}");
    file.read_exact(&mut size).map_err(cannot_read)?;
    let size = u64::from_le_bytes(size);
    let rest = length
        .checked_sub(8)
        .and_then(|rest| rest.checked_sub(size));
    let Some(rest) = rest.filter(|_| size <= MAX_HEADER_BYTES) else {
        return Err(format!("a header of {size} bytes, in a file of {length}"));
    };
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header).map_err(cannot_read)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|error| error.to_string())?;
    check_places(&metadata, rest)?;
    Ok((
        metadata,
        usize::try_from(rest).map_err(|error| error.to_string())?,
    ))
}

/// That tensors lie one behind another, as long as their shapes say, and fill the file.
fn check_places(metadata: &Metadata, length: u64) -> Result<(), String> {
    let tensors = metadata.tensors();
    let mut places: Vec<_> = tensors
        .iter()
        .map(|(name, info)| (info.data_offsets, name))
        .collect();
    places.sort_unstable();
    let mut next = 0;
    for ((begin, end), name) in places {
        let info = tensors[name];
        let elements = info
            .shape
            .iter()
            .try_fold(1_usize, |all, dim| all.checked_mul(*dim));
        let bits = elements.and_then(|elements| elements.checked_mul(info.dtype.bitsize()));
        let fits = bits.is_some_and(|bits| {
            Some(bits) == end.checked_sub(begin).and_then(|n| n.checked_mul(8))
        });
        if begin != next || !fits {
            return Err(format!(
                "`{name}` is not as long as its shape says, or not where it should be"
            ));
        }
        next = end;
    }
    match next as u64 == length {
        true => Ok(()),
        false => Err(format!(
            "its tensors have {next} bytes, and {length} are there"
        )),
    }
}

/// Reads the bytes of the tensors.
fn read_data(path: &Path, mut file: impl Read, length: usize) -> Result<AlignedBuffer, Error> {
    let mut data = AlignedBuffer::zeroed(length, "the weights file")?;
    let read = file.read_exact(&mut data.bytes_mut()[..length]);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => bad(path, "it became shorter while it was read"),
        _ => bad(path, error),
    })?;
    Ok(data)
}
