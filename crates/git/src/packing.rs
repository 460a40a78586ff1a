//! Packs for tests, made by hand: as no git would make them.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::io::Write as _;

use gix_hash::ObjectId as Id;
use gix_object::{Kind, compute_hash};

use crate::objects::HASH;

const PACK_HEADER_BYTES: usize = 12;

/// A pack in the making, and what each of its objects is.
#[derive(Default)]
pub struct Packing {
    entries: Vec<u8>,
    /// With its content, and where it is.
    pub objects: Vec<(Kind, Vec<u8>, usize)>,
}

impl Packing {
    pub fn whole(&mut self, kind: Kind, content: &[u8]) -> usize {
        let number = [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag].iter().position(|one| *one == kind).unwrap() + 1;
        self.add(u8::try_from(number).unwrap(), &[], content, kind, content.to_vec())
    }

    /// `instructions` make `content` of the object `base`.
    pub fn difference(&mut self, base: usize, instructions: &[u8], content: Vec<u8>) -> usize {
        let (kind, old, offset) = &self.objects[base];
        let mut delta = [number(old.len()), number(content.len())].concat();
        delta.extend_from_slice(instructions);
        // Seven bits each, the last first, less one.
        let mut distance = PACK_HEADER_BYTES + self.entries.len() - offset;
        let mut bytes = vec![u8::try_from(distance & 0x7f).unwrap()];
        while distance >> 7 > 0 {
            distance = (distance >> 7) - 1;
            bytes.push(0x80 | u8::try_from(distance & 0x7f).unwrap());
        }
        bytes.reverse();
        let kind = *kind;
        self.add(6, &bytes, &delta, kind, content)
    }

    /// The same, with nothing of the base.
    pub fn anew(&mut self, base: usize, content: &[u8]) -> usize {
        let pieces = content.chunks(127).flat_map(|piece| [&[u8::try_from(piece.len()).unwrap()], piece].concat());
        self.difference(base, &pieces.collect::<Vec<_>>(), content.to_vec())
    }

    /// The same, with `end` after all of the base.
    pub fn longer(&mut self, base: usize, end: &[u8]) -> usize {
        const COPY_BYTES_MAX: usize = 0xff_ffff;
        let old = self.objects[base].1.clone();
        let mut instructions = Vec::new();
        for start in (0..old.len()).step_by(COPY_BYTES_MAX) {
            let (start_bytes, length) = (u32::try_from(start).unwrap(), COPY_BYTES_MAX.min(old.len() - start));
            instructions.push(0xff);
            instructions.extend_from_slice(&start_bytes.to_le_bytes());
            instructions.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes()[..3]);
        }
        instructions.push(u8::try_from(end.len()).unwrap());
        instructions.extend_from_slice(end);
        self.difference(base, &instructions, [&old, end].concat())
    }

    pub fn add(&mut self, number: u8, base: &[u8], stored: &[u8], kind: Kind, content: Vec<u8>) -> usize {
        let offset = PACK_HEADER_BYTES + self.entries.len();
        let (mut size, mut byte) = (stored.len() >> 4, (number << 4) | u8::try_from(stored.len() & 0x0f).unwrap());
        while size > 0 {
            self.entries.push(byte | 0x80);
            (byte, size) = (u8::try_from(size & 0x7f).unwrap(), size >> 7);
        }
        self.entries.push(byte);
        self.entries.extend_from_slice(base);
        let mut encoder = flate2::write::ZlibEncoder::new(&mut self.entries, flate2::Compression::fast());
        encoder.write_all(stored).unwrap();
        encoder.finish().unwrap();
        self.objects.push((kind, content, offset));
        self.objects.len() - 1
    }

    pub fn id(&self, object: usize) -> Id {
        let (kind, content, _) = &self.objects[object];
        compute_hash(HASH, *kind, content).unwrap()
    }

    pub fn pack(&self) -> Vec<u8> {
        let count = u32::try_from(self.objects.len()).unwrap();
        let mut pack = [b"PACK", &2u32.to_be_bytes()[..], &count.to_be_bytes(), &self.entries].concat();
        let mut hasher = gix_hash::hasher(HASH);
        hasher.update(&pack);
        pack.extend_from_slice(hasher.try_finalize().unwrap().as_slice());
        pack
    }
}

/// Seven bits each, the first first.
pub fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >> 7 > 0 {
        bytes.push(0x80 | u8::try_from(number & 0x7f).unwrap());
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}
