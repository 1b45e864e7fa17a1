//! Where a tool writes: stdout, or a file that is replaced as a whole.
//!
//! A file appears under its name when all is written, so that no reader ever sees half of it, and
//! what was there before stays until then. Results are *lines*: however a run ends, what is left of
//! it are whole ones.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cohort_files::NewFile;
use cohort_runtime::locks::locked;

use crate::exit::{FAILED, Stop};

/// Lines are written out once they have this many bytes.
const BUFFER_BYTES: usize = 1 << 16;
/// How long an end from outside waits for a write that is going on.
const PATIENCE: Duration = Duration::from_millis(50);

/// Writes all bytes. A reader that has gone away is not an error worth a message.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    Document::open(path)?.write(bytes)
}

/// What is written once, at the end, to a place that is found at the beginning.
pub struct Document {
    path: PathBuf,
    place: WrittenFile,
}

impl Document {
    /// Opens a file that is complete, or left as it was, when it is finished; `-` is standard output.
    pub fn open(path: &Path) -> Result<Document, Stop> {
        Document::new(path, WrittenFile::open(path))
    }

    /// One for who may open and rename no file when it is written: what was there is gone at once.
    pub fn open_in_place(path: &Path) -> Result<Document, Stop> {
        let stream = match path == Path::new("-") {
            true => WrittenFile::open(path),
            false => File::create(path).map(|file| WrittenFile::Stream(Box::new(file))),
        };
        Document::new(path, stream)
    }

    fn new(path: &Path, place: io::Result<WrittenFile>) -> Result<Document, Stop> {
        Ok(Document {
            path: path.to_owned(),
            place: place.map_err(|error| cannot_write(path, &error))?,
        })
    }

    /// Writes all bytes. A reader that has gone away is not an error worth a message.
    pub fn write(mut self, bytes: &[u8]) -> Result<(), Stop> {
        let written = self.place.write_all(bytes);
        written
            .and_then(|()| self.place.settle())
            .map_err(|error| cannot_write(&self.path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Stop {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Stop::reported(FAILED);
    }
    if let Some(folder) = missing_folder(path) {
        return no_folder(path, folder);
    }
    Stop::usage(format!("cannot write `{}`: {error}", path.display()))
}

/// Lines of results. A clone is the same output, for whoever ends the run from outside.
#[derive(Clone)]
pub struct Lines {
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

struct State {
    place: Option<WrittenFile>,
    /// What was not handed on yet; behind the whole lines, which end at `lines`, there may be a part of one.
    waiting: Vec<u8>,
    lines: usize,
    /// Bytes that are in place: all of them, and those of whole lines.
    written: u64,
    whole: u64,
}

impl Lines {
    /// Opens a file that is written line by line; `-` is standard output.
    pub fn open(path: &Path) -> Result<Lines, Stop> {
        let place = WrittenFile::open(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Lines {
            path: path.to_owned(),
            state: Arc::new(Mutex::new(State {
                place: Some(place),
                waiting: Vec::new(),
                lines: 0,
                written: 0,
                whole: 0,
            })),
        })
    }

    /// All lines are written: they are in place after this.
    pub fn finish(&self) -> Result<(), Stop> {
        let mut state = self.lock();
        let settled = state.hand_on().and_then(|()| match state.place.take() {
            Some(place) => place.settle(),
            None => Ok(()),
        });
        settled.map_err(|error| cannot_write(&self.path, &error))
    }

    /// The run ends early: puts the whole lines that there are in place. Where there are none, a file
    /// stays as it was. Nothing else is written after this.
    pub fn keep(&self) {
        let begin = Instant::now();
        let mut state = loop {
            match self.state.try_lock() {
                Ok(state) => break state,
                // Who writes may never be done, as nobody reads.
                Err(_) if begin.elapsed() > PATIENCE => return,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        // What cannot be written is not there.
        let _ = state.hand_on();
        let whole = state.whole;
        if let Some(place) = state.place.take()
            && whole > 0
        {
            let _ = place.cut(whole).and_then(WrittenFile::settle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
            state.lines = state.waiting.len() + last + 1;
        }
        state.waiting.extend_from_slice(bytes);
        // A long line comes in many small pieces.
        if state.lines > 0 && state.waiting.len() >= BUFFER_BYTES {
            state.hand_on()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().hand_on()
    }
}

impl State {
    /// Writes the whole lines that wait.
    fn hand_on(&mut self) -> io::Result<()> {
        let Some(place) = &mut self.place else {
            return Err(io::Error::other("the run has ended"));
        };
        let end = self.lines;
        let mut done = 0;
        let result = loop {
            if done == end {
                break place.flush();
            }
            match place.write(&self.waiting[done..end]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if let Some(last) = self.waiting[..done].iter().rposition(|byte| *byte == b'\n') {
            self.whole = self.written + last as u64 + 1;
        }
        self.written += done as u64;
        self.waiting.drain(..done);
        self.lines -= done;
        result
    }
}

enum WrittenFile {
    /// Stdout, or what is not a regular file.
    Stream(Box<dyn Write + Send>),
    /// A new file.
    New(NewFile),
}

impl WrittenFile {
    fn open(path: &Path) -> io::Result<WrittenFile> {
        if path == Path::new("-") {
            return Ok(WrittenFile::Stream(Box::new(io::stdout())));
        }
        Ok(match fs::metadata(path) {
            Ok(before) if !before.is_file() => WrittenFile::Stream(Box::new(File::create(path)?)),
            _ => WrittenFile::New(NewFile::create(path)?),
        })
    }

    /// Only the first bytes count.
    fn cut(mut self, bytes: u64) -> io::Result<WrittenFile> {
        if let WrittenFile::New(file) = &mut self {
            file.truncate(bytes)?;
        }
        Ok(self)
    }

    /// Gives a file its name.
    fn settle(mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            WrittenFile::Stream(_) => Ok(()),
            WrittenFile::New(file) => file.settle(),
        }
    }
}

impl Write for WrittenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            WrittenFile::Stream(stream) => stream.write(bytes),
            WrittenFile::New(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            WrittenFile::Stream(stream) => stream.flush(),
            WrittenFile::New(file) => file.flush(),
        }
    }
}

/// An option with the file that it names.
pub type Named<'a> = (&'a str, &'a Path);

/// Refuses to write to a file that is read as well, or to one file for two purposes, by whatever
/// names or links.
pub fn refuse_same(written: &[Named<'_>], read: &[Named<'_>]) -> Result<(), Stop> {
    for (index, (option, path)) in written.iter().enumerate() {
        let Some(file) = Identity::of(path, io::stdout()) else {
            continue;
        };
        let is_same =
            |(_, other): &&Named<'_>| Identity::of(other, io::stdin()) == Some(file.clone());
        if let Some((other, _)) = read.iter().find(is_same) {
            return Err(Stop::usage(format!(
                "`{option}` would overwrite {}, which is {other}; write to another file",
                path.display()
            )));
        }
        let is_same = |(_, other): &&Named<'_>| {
            let both_stdout = *path == Path::new("-") && *other == Path::new("-");
            !both_stdout && Identity::of(other, io::stdout()) == Some(file.clone())
        };
        if let Some((other, _)) = written[..index].iter().find(is_same) {
            return Err(Stop::usage(format!(
                "`{option}` and `{other}` name the same file, {}",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Refuses files in folders that are not there, before any time is spent on what is written to them.
pub fn refuse_missing(written: &[Named<'_>]) -> Result<(), Stop> {
    let missing = |(_, path): &Named<'_>| Some(no_folder(path, missing_folder(path)?));
    written.iter().find_map(missing).map_or(Ok(()), Err)
}

fn no_folder(path: &Path, folder: &Path) -> Stop {
    Stop::usage(format!(
        "cannot write `{}`: there is no folder `{}`",
        path.display(),
        folder.display()
    ))
}

/// The folder of a file, if there is none of that name.
fn missing_folder(path: &Path) -> Option<&Path> {
    path.parent()
        .filter(|folder| *folder != Path::new("") && !folder.is_dir())
}

/// What two names of a file have in common.
#[derive(Clone, PartialEq, Eq)]
enum Identity {
    There(u64, u64),
    /// It would be made in that folder.
    New(PathBuf),
}

impl Identity {
    /// Of a regular file; `-` is that stream.
    fn of(path: &Path, stream: impl AsFd) -> Option<Identity> {
        let metadata = match path == Path::new("-") {
            true => File::from(stream.as_fd().try_clone_to_owned().ok()?).metadata(),
            false => fs::metadata(path),
        };
        match metadata {
            Ok(file) if file.is_file() => Some(Identity::There(file.dev(), file.ino())),
            Ok(_) => None,
            Err(_) => {
                let folder = match path.parent() {
                    Some(folder) if folder != Path::new("") => folder,
                    _ => Path::new("."),
                };
                let folder = fs::canonicalize(folder).ok()?;
                Some(Identity::New(folder.join(path.file_name()?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_by_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "before").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        lines.write_all(b"one\ntwo").unwrap();
        lines.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        lines.clone().keep();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        assert!(lines.flush().is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_stays_when_nothing_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "before").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        lines.write_all(b"half a line").unwrap();
        lines.keep();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    }

    #[test]
    fn a_link_keeps_to_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "before").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, b"after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn one_file_by_two_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, hard) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "").unwrap();
        fs::hard_link(&path, &hard).unwrap();
        let read: [Named<'_>; 1] = [("the input", &path)];
        assert!(refuse_same(&[("--output", &hard)], &read).is_err());
        let other = folder.path().join("new");
        assert!(refuse_same(&[("--output", &other)], &read).is_ok());
        let twice: [Named<'_>; 2] = [
            ("--output", &other),
            ("--stats", &folder.path().join("./new")),
        ];
        assert!(refuse_same(&twice, &read).is_err());
        let null = Path::new("/dev/null");
        assert!(refuse_same(&[("--output", null), ("--stats", null)], &[("in", null)]).is_ok());
    }
}
