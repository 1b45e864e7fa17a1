//! Reading whole files, where `-` is stdin.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::exit::Stop;

/// Reads a file, `-` being standard input.
pub fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    let result = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    } else {
        fs::read(path)
    };
    result.map_err(|error| Stop::usage(format!("cannot read `{}`: {error}", path.display())))
}

/// The size of a regular file.
pub fn size(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_file().then_some(metadata.len())
}
