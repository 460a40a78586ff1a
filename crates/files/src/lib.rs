//! Files that people name: by a flag, in a configuration, in a folder of
//! secrets.
//!
//! Invariant: to read one comes to an end, whatever it is. No more than its
//! limit is taken into memory; a pipe or a device is waited for no longer than
//! [`WAIT_MAX`]. No error repeats what is in a file.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// For all of a pipe, `<(command)` for one. A plain file is never waited for.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// What somebody names a file for.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// As an error calls it: `the configuration`.
    pub what: &'static str,
    /// None of its sort is larger.
    pub bytes_max: u64,
}

/// Which file could not be read, and why.
#[derive(Debug)]
pub struct FileError {
    pub what: &'static str,
    pub path: PathBuf,
    pub reason: Unread,
}

/// To be read after the name of a file.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error("does not exist: check its name")]
    Missing,
    #[error("may not be read by this user: change its owner or its mode")]
    Forbidden,
    #[error("is a directory: name a file in it")]
    Directory,
    #[error("has more than {bytes_max} bytes: is it the right file?")]
    TooLarge { bytes_max: u64 },
    #[error("has no end after {} s: name a plain file, or a pipe that somebody writes to", WAIT_MAX.as_secs())]
    Silent,
    #[error("is not UTF-8 text: is it the right file?")]
    NotText,
    #[error("cannot be read")]
    Io(#[source] io::Error),
}

impl FileKind {
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        self.open(path)?.read()
    }

    pub fn read_text(&self, path: &Path) -> Result<String, FileError> {
        String::from_utf8(self.read(path)?).map_err(|_| self.error(path, Unread::NotText))
    }

    /// For whoever looks at the file before its content.
    pub fn open<'p>(&self, path: &'p Path) -> Result<Opened<'p>, FileError> {
        // Or the open of a pipe waits for a writer.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path).and_then(|file| {
            let metadata = file.metadata()?;
            Ok((file, metadata))
        });
        match opened {
            Ok((_, metadata)) if metadata.is_dir() => Err(self.error(path, Unread::Directory)),
            Ok((file, metadata)) => Ok(Opened { file, metadata, path, kind: *self }),
            Err(error) => Err(self.error(path, error.into())),
        }
    }

    fn error(&self, path: &Path, reason: Unread) -> FileError {
        FileError { what: self.what, path: path.to_owned(), reason }
    }
}

/// Open, and no directory.
pub struct Opened<'p> {
    file: File,
    metadata: Metadata,
    path: &'p Path,
    kind: FileKind,
}

impl Opened<'_> {
    /// Of the open file, not of its name, which may be another's by now.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub fn read(self) -> Result<Vec<u8>, FileError> {
        self.read_within(WAIT_MAX)
    }

    fn read_within(self, wait: Duration) -> Result<Vec<u8>, FileError> {
        self.content(wait).map_err(|reason| self.kind.error(self.path, reason))
    }

    fn content(&self, wait: Duration) -> Result<Vec<u8>, Unread> {
        let (bytes_max, end) = (self.kind.bytes_max, Instant::now() + wait);
        let mut content = Vec::new();
        // One more than it may have shows that it has too many.
        let mut bounded = (&self.file).take(bytes_max.saturating_add(1));
        loop {
            await_bytes(&self.file, end)?;
            match bounded.read_to_end(&mut content) {
                Ok(_) if content.len() as u64 > bytes_max => return Err(Unread::TooLarge { bytes_max }),
                Ok(_) => return Ok(content),
                // What was read stays.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Until there is something to read, or the end. At once for a plain file.
fn await_bytes(file: &File, end: Instant) -> Result<(), Unread> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| Unread::Silent)?;
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(Unread::Silent),
            Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(Unread::Io(error.into())),
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            ErrorKind::PermissionDenied => Self::Forbidden,
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.what, self.path.display(), self.reason)
    }
}

impl std::error::Error for FileError {
    /// What the reason says is said already.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.reason.source()
    }
}
