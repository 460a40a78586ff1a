//! The engine's journal, read before the engine does.
//!
//! fjall cuts a journal at the first entry that it cannot read, whatever
//! follows, and says nothing. So the store looks first. Batches are synced one
//! after the other: at most the last one can be unfinished, and that one was
//! never acknowledged. A broken batch with a good one behind it is damage.
//!
//! Invariant: nothing is changed here but by [`cut`], which removes one
//! unfinished batch from the end.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tidegate_model::ResourceVersion;
use xxhash_rust::xxh3::Xxh3;

use crate::head::{HEAD_KEY, Head};

const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const TAG_CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";
/// Value type, compression, keyspace, and the lengths of key and value.
const ITEM_HEAD_BYTES: usize = 1 + 1 + 8 + 2 + 4 + 4;

/// What a journal file holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Scan {
    pub path: PathBuf,
    pub id: u64,
    /// The end of the last batch that is whole.
    pub end: u64,
    pub tail: Tail,
    /// In the whole batches.
    pub newest: Option<ResourceVersion>,
}

/// What is behind the last whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing, or the zeros of preallocated space.
    Clean,
    /// The beginning of one batch.
    Torn { bytes: u64 },
    /// A batch that does not read, and good ones behind it.
    Damaged,
}

/// All journals of the engine in `dir`, oldest first.
pub fn scan(dir: &Path) -> io::Result<Vec<Scan>> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jnl"));
        if let Some(id) = id.and_then(|id| id.parse().ok()) {
            journals.push((id, path));
        }
    }
    journals.sort();
    journals.into_iter().map(|(id, path)| scan_file(id, path)).collect()
}

/// Removes what is behind the last whole batch.
pub fn cut(scan: &Scan) -> io::Result<()> {
    let file = File::options().write(true).open(&scan.path)?;
    file.set_len(scan.end)?;
    file.sync_all()
}

fn scan_file(id: u64, path: PathBuf) -> io::Result<Scan> {
    let file = File::open(&path)?;
    let len = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let (mut end, mut newest) = (0, None);
    while let Some(batch) = read_batch(&mut reader, len - end)? {
        end += batch.bytes;
        newest = newest.max(batch.newest);
    }
    let tail = read_tail(reader.into_inner(), end)?;
    Ok(Scan { path, id, end, tail, newest })
}

fn read_tail(mut file: File, end: u64) -> io::Result<Tail> {
    file.seek(SeekFrom::Start(end))?;
    let mut rest = Vec::new();
    let blank = vec![0; 1 << 18];
    let mut piece = blank.clone();
    // Zeros are counted, not kept: preallocated space is 64 MiB of them.
    let mut zeros = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        if piece[..read] == blank[..read] {
            zeros += read;
            continue;
        }
        rest.resize(rest.len() + zeros, 0);
        rest.extend(&piece[..read]);
        zeros = 0;
    }
    let used = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    rest.truncate(used);
    match used {
        0 => Ok(Tail::Clean),
        _ if has_batch(&rest)? => Ok(Tail::Damaged),
        _ => Ok(Tail::Torn { bytes: used as u64 }),
    }
}

/// Whether a whole batch begins behind the end of some other.
fn has_batch(rest: &[u8]) -> io::Result<bool> {
    for at in 0..rest.len().saturating_sub(TRAILER.len()) {
        if rest[at..].starts_with(TRAILER) {
            let behind = &rest[at + TRAILER.len()..];
            if read_batch(&mut &*behind, behind.len() as u64)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

struct Batch {
    bytes: u64,
    newest: Option<ResourceVersion>,
}

/// The next batch if it is whole, `None` if it is anything else.
fn read_batch(reader: &mut impl Read, available: u64) -> io::Result<Option<Batch>> {
    match Parser::new(reader, available).batch() {
        Ok(batch) => Ok(Some(batch)),
        Err(Broken::Content) => Ok(None),
        Err(Broken::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(Broken::Io(error)) => Err(error),
    }
}

struct Parser<'a, R> {
    reader: &'a mut R,
    available: u64,
    bytes: u64,
    sum: Xxh3,
}

enum Broken {
    Content,
    Io(io::Error),
}

impl<'a, R: Read> Parser<'a, R> {
    fn new(reader: &'a mut R, available: u64) -> Self {
        Self { reader, available, bytes: 0, sum: Xxh3::new() }
    }

    fn batch(mut self) -> Result<Batch, Broken> {
        if self.array::<1>()? != [TAG_START] {
            return Err(Broken::Content);
        }
        let items = u32::from_le_bytes(self.array()?);
        self.array::<8>()?; // The engine's own sequence number.
        let mut newest = None;
        for _ in 0..items {
            newest = newest.max(self.item()?);
        }
        let tag = self.array()?;
        let (sum, trailer) = (u64::from_le_bytes(self.array()?), self.array::<4>()?);
        let is_whole = tag == [TAG_END] && trailer == TRAILER && sum == self.sum.digest();
        if is_whole { Ok(Batch { bytes: self.bytes, newest }) } else { Err(Broken::Content) }
    }

    /// The version in the item, if it is the head.
    fn item(&mut self) -> Result<Option<ResourceVersion>, Broken> {
        let tag = self.summed::<1>()?;
        if tag == [TAG_CLEAR] {
            self.summed::<8>()?;
            return Ok(None);
        }
        if tag != [TAG_ITEM] {
            return Err(Broken::Content);
        }
        let head = self.summed::<ITEM_HEAD_BYTES>()?;
        let key_len = u16::from_le_bytes([head[10], head[11]]);
        // The second length is the one on disk.
        let value_len = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
        let key = self.block(key_len.into())?;
        let value = self.block(value_len.into())?;
        Ok(if key == HEAD_KEY { Head::newest_of(&value) } else { None })
    }

    fn block(&mut self, len: u64) -> Result<Vec<u8>, Broken> {
        // A length from a disk: not believed beyond what is there.
        if self.bytes + len > self.available {
            return Err(Broken::Content);
        }
        let mut block = vec![0; usize::try_from(len).map_err(|_| Broken::Content)?];
        self.reader.read_exact(&mut block).map_err(Broken::Io)?;
        self.bytes += len;
        self.sum.update(&block);
        Ok(block)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let mut array = [0; N];
        self.reader.read_exact(&mut array).map_err(Broken::Io)?;
        self.bytes += N as u64;
        Ok(array)
    }

    fn summed<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let array = self.array()?;
        self.sum.update(&array);
        Ok(array)
    }
}
