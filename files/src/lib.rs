//! Files that are replaced as a whole: whoever reads a path finds what was there before, or all that is new.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// How the name of a file ends that is not complete: what a process that died left can be told by it.
pub const UNFINISHED: &str = ".unfinished";

/// A file beside a path, which takes the path's place once it is complete. Dropped before, it is gone, and the path is as it
/// was.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins one for a path. A link stays one, and its file is replaced. Who may read and write is as it was, or else as of
    /// any new file; what the process's umask withholds is withheld from both.
    ///
    /// # Errors
    ///
    /// `IsADirectory` and `InvalidInput` where something is there that is no regular file, `PermissionDenied` where what is
    /// there must not be written, and whatever the folder says of a new file.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mode = match fs::metadata(&path) {
            Ok(before) if before.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(before) if !before.is_file() => {
                let problem = "it is not a regular file";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            Ok(before) => {
                // What must not be written must not be replaced either.
                OpenOptions::new().write(true).open(&path)?;
                before.mode() & 0o777
            }
            Err(_) => 0o666,
        };
        NewFile::with_mode(path, mode)
    }

    /// The same, of a file that nobody but its owner reads, whatever was there before.
    ///
    /// # Errors
    ///
    /// Whatever the folder says of a new file.
    pub fn create_private(path: &Path) -> io::Result<NewFile> {
        NewFile::with_mode(path.to_owned(), 0o600)
    }

    fn with_mode(path: PathBuf, mode: u32) -> io::Result<NewFile> {
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(UNFINISHED)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder_of(&path));
        // The name of that file means nothing to those who are told of the error.
        let file = file.map_err(|error| io::Error::from(error.kind()))?;
        Ok(NewFile { file, path })
    }

    /// Keeps only the first bytes.
    ///
    /// # Errors
    ///
    /// Those of [`File::set_len`].
    pub fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.file.as_file().set_len(bytes)
    }

    /// Takes the path's place.
    ///
    /// # Errors
    ///
    /// Those of [`fs::rename`]; the path is as it was.
    pub fn settle(self) -> io::Result<()> {
        let settled = self.file.persist(self.path);
        settled.map(drop).map_err(|error| error.error)
    }

    /// The same, once all is on the disk; so it holds if the machine stops, too.
    ///
    /// # Errors
    ///
    /// Those of [`NewFile::settle`] and [`File::sync_all`].
    pub fn settle_on_disk(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let folder = File::open(folder_of(&self.path))?;
        self.settle()?;
        // The name too.
        folder.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

/// The folder in which a path is.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = NewFile::create(path)?;
        file.write_all(bytes)?;
        file.settle_on_disk()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_path_has_what_was_there_until_all_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "before").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"after, and more").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        file.truncate(5).unwrap();
        file.settle().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        drop(NewFile::create(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link, own] = ["file", "link", "own"].map(|name| folder.path().join(name));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        write(&link, b"after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(mode(&path), 0o640);
        NewFile::create_private(&own).unwrap().settle().unwrap();
        assert_eq!(mode(&own), 0o600);
    }

    #[test]
    fn what_is_no_regular_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let kind = |path: &Path| NewFile::create(path).unwrap_err().kind();
        assert_eq!(kind(&socket), io::ErrorKind::InvalidInput);
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        let nowhere = folder.path().join("no/file");
        assert_eq!(kind(&nowhere), io::ErrorKind::NotFound);
    }
}
