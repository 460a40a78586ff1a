//! Git's framing: four hex digits that count themselves and what follows.

use bytes::{BufMut, BytesMut};

/// Ends a section.
pub const FLUSH: &[u8] = b"0000";
/// Of one frame, its digits included.
pub const FRAME_BYTES_MAX: usize = 65_520;
const DIGITS: usize = 4;

/// What a buffer begins with.
#[derive(PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    Line(&'a [u8]),
    Flush,
    /// More has to come first.
    Unfinished,
    /// This is not git's framing.
    Bad,
}

impl<'a> Frame<'a> {
    /// With the number of bytes that it takes.
    pub fn first(bytes: &'a [u8]) -> (Self, usize) {
        let Some(digits) = bytes.first_chunk::<DIGITS>() else { return (Self::Unfinished, 0) };
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex);
        match digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()) {
            Some(0) => (Self::Flush, DIGITS),
            Some(length @ DIGITS..) => match bytes.get(DIGITS..length) {
                Some(line) => (Self::Line(line.strip_suffix(b"\n").unwrap_or(line)), length),
                None => (Self::Unfinished, 0),
            },
            // One to three are of the second version of the protocol.
            _ => (Self::Bad, 0),
        }
    }
}

/// A line is at most `FRAME_BYTES_MAX` minus its digits.
pub fn put_line(into: &mut BytesMut, line: &[u8]) {
    into.put_slice(format!("{:04x}", line.len() + DIGITS).as_bytes());
    into.put_slice(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        for (bytes, expected, taken) in [
            (&b"0009abcde and more"[..], Frame::Line(b"abcde"), 9),
            (b"0009abcd\n", Frame::Line(b"abcd"), 9),
            (b"0004", Frame::Line(b""), 4),
            (b"0000PACK", Frame::Flush, 4),
            (b"", Frame::Unfinished, 0),
            (b"000", Frame::Unfinished, 0),
            (b"0009abcd", Frame::Unfinished, 0),
            (b"0001", Frame::Bad, 0),
            (b"+00a", Frame::Bad, 0),
            (b"GET /", Frame::Bad, 0),
        ] {
            assert_eq!(Frame::first(bytes), (expected, taken), "{:?}", bytes.escape_ascii().to_string());
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = BytesMut::new();
        put_line(&mut bytes, b"ok refs/heads/main\n");
        assert_eq!(&bytes[..], b"0017ok refs/heads/main\n");
        assert_eq!(Frame::first(&bytes), (Frame::Line(b"ok refs/heads/main"), bytes.len()));
    }
}
