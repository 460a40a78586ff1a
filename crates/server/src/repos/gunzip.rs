//! A gzipped request body, as git sends long ones.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;

/// Fed at once: deflate makes at most ~1,032 bytes of one, so 4 MiB are made
/// before we look at the limit.
const SLICE_BYTES: usize = 4 << 10;

pub struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    left: u64,
}

impl Gunzip {
    pub fn new(bytes_max: u64) -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), left: bytes_max }
    }

    /// Takes a slice off `packed`; what it unpacks to, which may be nothing yet.
    pub fn unpack(&mut self, packed: &mut Bytes) -> io::Result<Vec<u8>> {
        let slice = packed.split_to(packed.len().min(SLICE_BYTES));
        self.decoder.write_all(&slice)?;
        self.taken()
    }

    /// The rest, or why there is none.
    pub fn finish(&mut self) -> io::Result<Vec<u8>> {
        self.decoder.try_finish()?;
        self.taken()
    }

    fn taken(&mut self) -> io::Result<Vec<u8>> {
        let piece = std::mem::take(self.decoder.get_mut());
        self.left = self.left.checked_sub(piece.len() as u64).ok_or_else(|| io::Error::other("unpacks to too much"))?;
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    fn gunzip(bytes: &Bytes, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut gunzip = Gunzip::new(bytes_max);
        let mut all = Vec::new();
        let mut bytes = bytes.clone();
        while !bytes.is_empty() {
            all.extend(gunzip.unpack(&mut bytes)?);
        }
        all.extend(gunzip.finish()?);
        Ok(all)
    }

    #[test]
    fn what_goes_in_comes_out() {
        let text: Vec<u8> = (0..100_000u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(gunzip(&gzip(&text), 1 << 20).unwrap(), text);
    }

    #[test]
    fn bombs_truncation_and_nonsense_are_errors() {
        assert!(gunzip(&gzip(&vec![0; 50 << 20]), 1 << 20).is_err());
        let whole = gzip(b"hello");
        assert!(gunzip(&whole.slice(..whole.len() - 9), 100).is_err());
        assert!(gunzip(&Bytes::from_static(b"not gzip at all"), 100).is_err());
    }
}
