//! MLIR that comes from outside is parsed in a child process first.
//!
//! MLIR's parser crashes on some broken text: it reports a list of dims that it could not parse, and then
//! takes it for one. What a child dies of is an error here; what it refuses, the parent reports itself.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;

use super::module::parse_raw;
use crate::exit::Stop;

/// Between two modules that `--split-input-file` tells apart.
const SPLIT: &str = "\n// -----";

/// Refuses what MLIR's parser would not survive, whole and in the parts that a split makes of it.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let cannot = |error: io::Error| Stop::usage(format!("cannot try the parser: {error}"));
    let mut said = unnamed_file().map_err(cannot)?;
    // SAFETY: the child touches nothing that another thread may hold a lock of but the allocator, which
    // `fork` leaves usable, and it ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: both descriptors are open; the child has no handler that the parent's state needs.
        unsafe {
            libc::dup2(said.as_raw_fd(), libc::STDERR_FILENO);
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::signal(libc::SIGABRT, libc::SIG_DFL);
        }
        try_all(path, bytes);
        // SAFETY: ends the child at once; nothing of the parent's is flushed or unlocked.
        unsafe { libc::_exit(0) };
    }
    if child < 0 {
        return Err(cannot(io::Error::last_os_error()));
    }
    let mut status = 0;
    // SAFETY: the child is this one's, and `status` is writable.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(cannot(error));
        }
    }
    if !libc::WIFSIGNALED(status) {
        return Ok(());
    }
    let mut text = Vec::new();
    // What it said is for the reader; the error is told without it.
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_end();
    let line = if text.is_empty() { "" } else { "\n" };
    Err(Stop::usage(format!(
        "{} is not a valid MLIR module: MLIR's parser crashed on it (signal {}){line}{text}",
        path.display(),
        libc::WTERMSIG(status)
    )))
}

fn try_all(path: &Path, bytes: &[u8]) {
    let context = cohort_dialects::new_context();
    drop(parse_raw(&context, path, bytes));
    let text = String::from_utf8_lossy(bytes);
    if text.contains(SPLIT) {
        for part in text.split(SPLIT) {
            // The rest of the line that splits.
            let module = part.find('\n').map_or("", |line| &part[line..]);
            drop(parse_raw(&context, Path::new("-"), module.as_bytes()));
        }
    }
}

/// A file that only this process and its child know.
fn unnamed_file() -> io::Result<File> {
    // SAFETY: the name ends with NUL; a descriptor that comes back is nobody else's.
    unsafe {
        match libc::memfd_create(c"said".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            file => Ok(File::from_raw_fd(file)),
        }
    }
}
