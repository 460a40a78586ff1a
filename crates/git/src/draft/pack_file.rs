//! A pack and its index, as git has them on disk.
//!
//! A tree that differs from the one before it is stored as the difference,
//! which we know without searching: a folder of 10,000 files costs some 60
//! bytes for a commit that changes one of them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use gix_hash::ObjectId;
use gix_object::Kind;
use tempfile::NamedTempFile;

use super::HASH;

const TYPE_OFFSET_DELTA: u8 = 6;
const HEADER_BYTES: usize = 12;
/// Above it an offset goes into the index's second table.
const SMALL_OFFSET_MAX: u64 = 0x7fff_ffff;
/// What one instruction of a difference can insert, and copy.
const INSERT_BYTES_MAX: usize = 127;
const COPY_BYTES_MAX: usize = 0xff_ffff;
/// Of compressed bytes at once: most objects are fewer.
const PIECE_BYTES: usize = 4 << 10;

#[derive(Default)]
pub(super) struct PackFile {
    /// Everything after the header.
    body: Vec<u8>,
    entries: Vec<Row>,
    compress: Option<Compress>,
}

/// Where a pack without its ending is.
pub(super) struct SavedPack(PathBuf);

impl SavedPack {
    fn file(&self, ending: &str) -> PathBuf {
        self.0.with_extension(ending)
    }

    /// The index first: git sees a pack only with its index. What cannot be
    /// removed is found by whoever tidies up.
    pub fn remove(&self) {
        for ending in ["idx", "pack"] {
            let _ = fs::remove_file(self.file(ending));
        }
    }
}

struct Row {
    id: ObjectId,
    crc: u32,
    offset: u64,
}

impl PackFile {
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Where it is in the pack.
    pub fn add(&mut self, kind: Kind, id: ObjectId, content: &[u8]) -> io::Result<u64> {
        let code = match kind {
            Kind::Commit => 1,
            Kind::Tree => 2,
            Kind::Blob => 3,
            Kind::Tag => 4,
        };
        self.entry(id, code, &[], content)
    }

    /// Of an object that was added in whole, if it is here. Looks at one after
    /// the other, the newest first: nobody asks often for what they just made.
    pub fn content(&self, id: &ObjectId) -> io::Result<Option<Vec<u8>>> {
        let Some(row) = self.entries.iter().rev().find(|row| row.id == *id) else { return Ok(None) };
        let at = usize::try_from(row.offset).map_err(io::Error::other)? - HEADER_BYTES;
        let entry = &self.body[at..];
        let size_bytes = entry.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
        let mut content = Vec::new();
        ZlibDecoder::new(&entry[size_bytes..]).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// As what differs from the object at `base`, whose content is `old`; in
    /// whole if that is not shorter, which the answer says.
    pub fn add_difference(
        &mut self,
        kind: Kind,
        id: ObjectId,
        base: u64,
        old: &[u8],
        new: &[u8],
    ) -> io::Result<(u64, bool)> {
        let difference = difference(old, new);
        if difference.len() >= new.len() / 2 {
            return Ok((self.add(kind, id, new)?, true));
        }
        let distance = offset_text(self.next_offset() - base);
        Ok((self.entry(id, TYPE_OFFSET_DELTA, &distance, &difference)?, false))
    }

    /// The index last: git sees a pack only with its index. `None` if there is
    /// nothing to save; after an error nothing of it is left.
    pub fn save(self, objects_dir: &Path) -> io::Result<Option<SavedPack>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let folder = objects_dir.join("pack");
        fs::create_dir_all(&folder)?;
        let mut pack = hashed(self.header());
        pack.update(&self.body);
        let checksum = pack.try_finalize().map_err(io::Error::other)?;
        let index = self.index(&checksum)?;
        let (mut pack, header) = (temporary(&folder)?, self.header());
        for part in [header.as_slice(), &self.body, checksum.as_slice()] {
            pack.write_all(part)?;
        }
        let saved = SavedPack(folder.join(format!("pack-{checksum}")));
        let write_index = || {
            let mut file = temporary(&folder)?;
            file.write_all(&index)?;
            keep(file, &saved.file("idx"))?;
            File::open(&folder)?.sync_all()
        };
        let written = keep(pack, &saved.file("pack")).and_then(|()| write_index());
        written.inspect_err(|_| saved.remove()).map(|()| Some(saved))
    }

    fn header(&self) -> Vec<u8> {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        [b"PACK".as_slice(), &2u32.to_be_bytes(), &count.to_be_bytes()].concat()
    }

    fn next_offset(&self) -> u64 {
        (HEADER_BYTES + self.body.len()) as u64
    }

    fn entry(&mut self, id: ObjectId, code: u8, base: &[u8], content: &[u8]) -> io::Result<u64> {
        let (offset, start) = (self.next_offset(), self.body.len());
        self.body.extend_from_slice(&size_text(code, content.len()));
        self.body.extend_from_slice(base);
        let compress = self.compress.get_or_insert_with(|| Compress::new(Compression::fast(), true));
        deflate(compress, content, &mut self.body)?;
        let mut crc = Crc::new();
        crc.update(&self.body[start..]);
        self.entries.push(Row { id, crc: crc.sum(), offset });
        Ok(offset)
    }

    /// Version 2: fan-out, ids, checksums, offsets, large offsets, trailers.
    fn index(&self, pack_checksum: &ObjectId) -> io::Result<Vec<u8>> {
        let mut rows: Vec<&Row> = self.entries.iter().collect();
        rows.sort_by_key(|row| row.id);
        let mut out = Vec::with_capacity(1100 + rows.len() * 32);
        out.extend_from_slice(b"\xfftOc\0\0\0\x02");
        for first in 0..=u8::MAX {
            let count = rows.partition_point(|row| row.id.first_byte() <= first);
            out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        }
        rows.iter().for_each(|row| out.extend_from_slice(row.id.as_slice()));
        rows.iter().for_each(|row| out.extend_from_slice(&row.crc.to_be_bytes()));
        let mut large = Vec::new();
        for row in &rows {
            let small = u32::try_from(row.offset).ok().filter(|_| row.offset <= SMALL_OFFSET_MAX);
            let at = u32::try_from(large.len()).unwrap_or(u32::MAX) | 0x8000_0000;
            out.extend_from_slice(&small.unwrap_or(at).to_be_bytes());
            if small.is_none() {
                large.push(row.offset);
            }
        }
        large.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
        out.extend_from_slice(pack_checksum.as_slice());
        let checksum = hashed(&out).try_finalize().map_err(io::Error::other)?;
        out.extend_from_slice(checksum.as_slice());
        Ok(out)
    }
}

fn hashed(bytes: impl AsRef<[u8]>) -> gix_hash::Hasher {
    let mut hasher = gix_hash::hasher(HASH);
    hasher.update(bytes.as_ref());
    hasher
}

fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    // Git's own prefix: whoever cleans up after git cleans up after us.
    tempfile::Builder::new().prefix("tmp_pack_").tempfile_in(folder)
}

fn keep(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// All of `content`, as one stream at the end of `out`. By way of a piece,
/// because `compress_vec` would zero all that `out` has room for: megabytes for
/// each object of a large pack.
fn deflate(compress: &mut Compress, content: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    compress.reset();
    let (mut rest, mut piece) = (content, [0; PIECE_BYTES]);
    loop {
        let (read, written) = (compress.total_in(), compress.total_out());
        let status = compress.compress(rest, &mut piece, FlushCompress::Finish).map_err(io::Error::other)?;
        let since = |now: u64, before: u64| usize::try_from(now - before).map_err(io::Error::other);
        rest = &rest[since(compress.total_in(), read)?..];
        out.extend_from_slice(&piece[..since(compress.total_out(), written)?]);
        if status == Status::StreamEnd {
            return Ok(());
        }
    }
}

/// An entry's type and the length of its content.
fn size_text(code: u8, size: usize) -> Vec<u8> {
    let mut bytes = vec![(code << 4) | (size & 0x0f) as u8];
    let mut rest = size >> 4;
    while rest > 0 {
        *bytes.last_mut().unwrap_or(&mut 0) |= 0x80;
        bytes.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    bytes
}

/// How far back the base is, in the form of an offset difference.
fn offset_text(distance: u64) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    let mut rest = distance >> 7;
    while rest > 0 {
        rest -= 1;
        bytes.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    bytes.reverse();
    bytes
}

/// What is the same at both ends is copied, what is between is inserted.
fn difference(old: &[u8], new: &[u8]) -> Vec<u8> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - prefix;
    let same_from_end = old.iter().rev().zip(new.iter().rev()).take(rest);
    let suffix = same_from_end.take_while(|(a, b)| a == b).count();
    let mut out = [length_text(old.len()), length_text(new.len())].concat();
    copy(&mut out, 0, prefix);
    for piece in new[prefix..new.len() - suffix].chunks(INSERT_BYTES_MAX) {
        out.push(piece.len() as u8);
        out.extend_from_slice(piece);
    }
    copy(&mut out, old.len() - suffix, suffix);
    out
}

fn copy(out: &mut Vec<u8>, mut from: usize, mut size: usize) {
    while size > 0 {
        let count = size.min(COPY_BYTES_MAX);
        let at = out.len();
        out.push(0x80);
        let bytes = (from as u32).to_le_bytes().into_iter().chain((count as u32).to_le_bytes().into_iter().take(3));
        for (bit, byte) in bytes.enumerate().filter(|(_, byte)| *byte != 0) {
            out[at] |= 1 << bit;
            out.push(byte);
        }
        (from, size) = (from + count, size - count);
    }
}

fn length_text(mut length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}
