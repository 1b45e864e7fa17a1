//! The input by its path, where `-` is stdin.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use cohort_runtime::InputStream;

use crate::exit::Stop;

/// Enough for several instances, so that reading is few calls.
const BUFFER_BYTES: usize = 1 << 18;

/// A file, a pipe or a terminal.
pub struct Input(BufReader<File>);

pub fn input(path: &Path) -> Result<Input, Stop> {
    let open = || {
        let file = match path == Path::new("-") {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::open(path)?,
        };
        // Opening a folder succeeds; reading it would not.
        match file.metadata()?.is_dir() {
            true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            false => Ok(file),
        }
    };
    let file =
        open().map_err(|error| Stop::usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(Input(BufReader::with_capacity(BUFFER_BYTES, file)))
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }
}

impl InputStream for Input {
    fn would_wait(&mut self) -> bool {
        if !self.0.buffer().is_empty() {
            return false;
        }
        let mut asked = libc::pollfd {
            fd: self.0.get_ref().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: it is told of one descriptor, which is open, and returns at once.
        unsafe { libc::poll(&mut asked, 1, 0) == 0 }
    }
}
