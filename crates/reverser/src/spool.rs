//! Contents of a long list, out of memory until they are written.
//!
//! Invariants: what is on disk is encrypted with a key that this process alone
//! has, because Secrets are among it. The file has no name: nothing is left of
//! it, whatever ends the process. What cannot be read back as it was is an
//! error, never another content.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use bytes::Bytes;

/// Written at once: some 200 objects.
const PIECE_BYTES: usize = 256 << 10;
const TAG_BYTES: usize = 16;

struct Spool {
    file: File,
    cipher: Aes256Gcm,
}

/// One content. The file is gone with the last of them.
#[derive(Clone)]
pub struct Spooled {
    spool: Arc<Spool>,
    offset: u64,
    /// Without the tag. Objects have 1.5 MiB in etcd.
    bytes: u32,
}

impl Spooled {
    /// After [`SpoolWriter::finish`].
    pub fn read(&self) -> io::Result<Bytes> {
        let mut sealed = vec![0; self.bytes as usize + TAG_BYTES];
        self.spool.file.read_exact_at(&mut sealed, self.offset)?;
        let opened = self.spool.cipher.decrypt_in_place(&nonce(self.offset), &[], &mut sealed);
        opened.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not what was written"))?;
        Ok(sealed.into())
    }
}

impl PartialEq for Spooled {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spool, &other.spool) && self.offset == other.offset
    }
}

impl fmt::Debug for Spooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spooled").field("offset", &self.offset).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

pub struct SpoolWriter {
    spool: Arc<Spool>,
    written: u64,
    /// Follows what is written.
    piece: Vec<u8>,
}

impl SpoolWriter {
    /// In `folder`, without a name there.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        let key: [u8; 32] = rand::random();
        let spool = Arc::new(Spool { file, cipher: Aes256Gcm::new(&key.into()) });
        Ok(Self { spool, written: 0, piece: Vec::new() })
    }

    pub async fn add(&mut self, content: &[u8]) -> io::Result<Spooled> {
        let offset = self.written + self.piece.len() as u64;
        let bytes = u32::try_from(content.len()).map_err(io::Error::other)?;
        let at = self.piece.len();
        self.piece.extend_from_slice(content);
        let sealed = self.spool.cipher.encrypt_in_place_detached(&nonce(offset), &[], &mut self.piece[at..]);
        let tag = sealed.map_err(|_| io::Error::other("failed to encrypt"))?;
        self.piece.extend_from_slice(&tag);
        if self.piece.len() >= PIECE_BYTES {
            self.write().await?;
        }
        Ok(Spooled { spool: self.spool.clone(), offset, bytes })
    }

    pub async fn finish(mut self) -> io::Result<()> {
        self.write().await
    }

    /// On a thread that may wait for the disk.
    async fn write(&mut self) -> io::Result<()> {
        let (spool, piece, offset) = (self.spool.clone(), std::mem::take(&mut self.piece), self.written);
        let writing = tokio::task::spawn_blocking(move || spool.file.write_all_at(&piece, offset).map(|()| piece));
        self.piece = writing.await.map_err(io::Error::other)??;
        self.written += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

/// No two contents of a spool have an offset in common, and no two spools a key.
fn nonce(offset: u64) -> Nonce<aes_gcm::aead::consts::U12> {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_written_is_read_or_it_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SpoolWriter::create(folder.path()).unwrap();
        let contents: Vec<String> = (0..300).map(|at| format!("secret {at} {}", "x".repeat(at * 30))).collect();
        let mut spooled = vec![writer.add(b"").await.unwrap()];
        for content in &contents {
            spooled.push(writer.add(content.as_bytes()).await.unwrap());
        }
        assert!(spooled[300].read().is_err(), "the last piece is not there yet");
        writer.finish().await.unwrap();
        for (spooled, content) in spooled.iter().zip(std::iter::once("").chain(contents.iter().map(String::as_str))) {
            assert_eq!(spooled.read().unwrap(), content);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        let file = &spooled[0].spool.file;
        let mut all = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut all, 0).unwrap();
        assert!(!all.windows(6).any(|window| window == b"secret"), "nobody else can read it");
        file.write_all_at(b"!", spooled[7].offset).unwrap();
        assert!(spooled[7].read().is_err(), "it was changed");
        assert_eq!(spooled[8].read().unwrap(), contents[7]);
    }
}
