//! The contents of many blobs through one `git cat-file --batch`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, Command};

use crate::error::GitError;
use crate::repository::ObjectId;

const COMMAND: &str = "cat-file";
const READ_TIME_MAX: Duration = Duration::from_secs(300);
/// `<id> <type> <size>`: more is not git's.
const HEADER_BYTES_MAX: u64 = 256;

/// What is read into memory at most.
#[derive(Clone, Copy, Debug)]
pub struct BlobLimits {
    /// A larger blob is named, not read.
    pub blob_bytes_max: u64,
    pub blobs_max: usize,
    pub bytes_max: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blob {
    Content(Bytes),
    /// With its size.
    TooLarge(u64),
    /// A tree, a commit or a tag, whatever the entry says that led here.
    Other,
}

pub type Blobs = HashMap<ObjectId, Blob>;

pub(crate) async fn read(
    command: Command,
    dir: &Path,
    mut ids: Vec<ObjectId>,
    limits: BlobLimits,
) -> Result<Blobs, GitError> {
    ids.sort();
    ids.dedup();
    if ids.len() > limits.blobs_max {
        return Err(limits.exceeded());
    }
    if ids.is_empty() {
        return Ok(Blobs::new());
    }
    let all = tokio::time::timeout(READ_TIME_MAX, read_all(command, dir, ids, limits));
    all.await.map_err(|_| GitError::TooSlow { command: COMMAND, seconds: READ_TIME_MAX.as_secs() })?
}

async fn read_all(mut command: Command, dir: &Path, ids: Vec<ObjectId>, limits: BlobLimits) -> Result<Blobs, GitError> {
    command.args([COMMAND, "--batch", "--buffer"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(io_failed)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(GitError::Unreadable { command: COMMAND, what: "it has no pipes" });
    };
    // Asked and answered at the same time: a full pipe must not stop both.
    let mut reader = Reader { source: BufReader::new(stdout), dir, left: limits.bytes_max, limits };
    let (asked, answered) = tokio::join!(ask(stdin, &ids), reader.answers(&ids));
    let blobs = answered?;
    asked.map_err(io_failed)?;
    Ok(blobs)
}

async fn ask(mut stdin: ChildStdin, ids: &[ObjectId]) -> std::io::Result<()> {
    for id in ids {
        stdin.write_all(id.as_str().as_bytes()).await?;
        stdin.write_all(b"\n").await?;
    }
    stdin.shutdown().await
}

struct Reader<'d, R> {
    source: BufReader<R>,
    dir: &'d Path,
    left: u64,
    limits: BlobLimits,
}

impl<R: AsyncRead + Unpin> Reader<'_, R> {
    async fn answers(&mut self, ids: &[ObjectId]) -> Result<Blobs, GitError> {
        let mut blobs = HashMap::with_capacity(ids.len());
        for id in ids {
            let blob = self.answer(id).await?;
            blobs.insert(id.clone(), blob);
        }
        Ok(blobs)
    }

    async fn answer(&mut self, id: &ObjectId) -> Result<Blob, GitError> {
        let mut header = Vec::new();
        let mut head = (&mut self.source).take(HEADER_BYTES_MAX);
        head.read_until(b'\n', &mut header).await.map_err(io_failed)?;
        let (sort, size) = self.described(id, &header)?;
        let is_blob = sort == "blob";
        let blob = if !is_blob || size > self.limits.blob_bytes_max {
            let mut skipped = (&mut self.source).take(size);
            tokio::io::copy(&mut skipped, &mut tokio::io::sink()).await.map_err(io_failed)?;
            if is_blob { Blob::TooLarge(size) } else { Blob::Other }
        } else {
            self.left = self.left.checked_sub(size).ok_or_else(|| self.limits.exceeded())?;
            let mut content = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
            self.source.read_exact(&mut content).await.map_err(io_failed)?;
            Blob::Content(content.into())
        };
        // Git ends each content with a newline of its own.
        self.source.read_u8().await.map_err(io_failed)?;
        Ok(blob)
    }

    /// What it is, and its size.
    fn described(&self, id: &ObjectId, header: &[u8]) -> Result<(String, u64), GitError> {
        let header = String::from_utf8_lossy(header);
        let mut words = header.split_whitespace();
        match (words.next(), words.next(), words.next().and_then(|size| size.parse().ok())) {
            (Some(found), Some(sort), Some(size)) if found == id.as_str() => Ok((sort.to_owned(), size)),
            _ => {
                let message = format!("blob {id} is not there: run `git fsck` in that directory");
                Err(GitError::Failed { command: COMMAND, dir: self.dir.to_owned(), message })
            }
        }
    }
}

impl BlobLimits {
    fn exceeded(&self) -> GitError {
        GitError::TooMuch { files: self.blobs_max, bytes: self.bytes_max }
    }
}

fn io_failed(source: std::io::Error) -> GitError {
    GitError::Io { command: COMMAND, source }
}
