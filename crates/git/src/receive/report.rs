//! What the pusher's git is told, and through it the pusher.

use bytes::{BufMut, Bytes, BytesMut};

use super::pack_line::{FLUSH, put_line};
use super::request::{PushRequest, RefUpdate};

/// What the server understands. Git's own would promise the same, and more
/// with each version.
const CAPABILITIES: &str =
    "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 agent=tidegate";
const REPORT_BAND: u8 = 1;
const MESSAGE_BAND: u8 = 2;
/// Of one frame of a band: what every client takes.
const PIECE_BYTES_MAX: usize = 8 << 10;

/// All refs of a push move, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Done,
    /// In a word or two, behind the name of each ref.
    Refused(String),
    /// The objects could not be read at all.
    NotUnpacked(String),
}

/// Frames for one client.
pub struct Report<'a> {
    request: &'a PushRequest,
}

impl<'a> Report<'a> {
    pub fn new(request: &'a PushRequest) -> Self {
        Self { request }
    }

    /// Lines for the pusher's terminal; nothing for a client that has none.
    pub fn messages<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> Bytes {
        let mut bytes = BytesMut::new();
        if self.request.has_side_band {
            for line in lines {
                put_band(&mut bytes, MESSAGE_BAND, format!("{line}\n").as_bytes());
            }
        }
        bytes.freeze()
    }

    /// Says that it is still being worked on, so that nothing in between takes
    /// the connection for dead.
    pub fn keep_alive(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        if self.request.has_side_band {
            put_line(&mut bytes, &[REPORT_BAND]);
        }
        bytes.freeze()
    }

    /// The last of it.
    pub fn verdict(&self, verdict: &Verdict) -> Bytes {
        let mut report = BytesMut::new();
        if self.request.wants_report {
            self.put_report(&mut report, verdict);
        }
        if !self.request.has_side_band {
            return report.freeze();
        }
        let mut bytes = BytesMut::new();
        put_band(&mut bytes, REPORT_BAND, &report);
        bytes.put_slice(FLUSH);
        bytes.freeze()
    }

    fn put_report(&self, into: &mut BytesMut, verdict: &Verdict) {
        let unpacked = if let Verdict::NotUnpacked(reason) = verdict { reason } else { "ok" };
        put_line(into, format!("unpack {unpacked}\n").as_bytes());
        for RefUpdate { name, .. } in &self.request.updates {
            let line = match verdict {
                Verdict::Done => format!("ok {name}\n"),
                Verdict::Refused(reason) => format!("ng {name} {reason}\n"),
                Verdict::NotUnpacked(_) => format!("ng {name} unpacker error\n"),
            };
            put_line(into, line.as_bytes());
        }
        into.put_slice(FLUSH);
    }
}

/// The answer to a client that asks before it pushes; `refs` as names and ids.
pub(super) fn advertisement(refs: &[(String, String)]) -> Bytes {
    const NO_REF: &str = "capabilities^{}";
    let none = [(NO_REF.to_owned(), "0".repeat(40))];
    let refs = if refs.is_empty() { &none[..] } else { refs };
    let mut bytes = BytesMut::new();
    for (at, (name, id)) in refs.iter().enumerate() {
        let line = if at == 0 { format!("{id} {name}\0{CAPABILITIES}\n") } else { format!("{id} {name}\n") };
        put_line(&mut bytes, line.as_bytes());
    }
    bytes.put_slice(FLUSH);
    bytes.freeze()
}

fn put_band(into: &mut BytesMut, band: u8, content: &[u8]) {
    for piece in content.chunks(PIECE_BYTES_MAX) {
        put_line(into, &[&[band], piece].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::ObjectId;

    fn request(wants_report: bool, has_side_band: bool) -> PushRequest {
        let id = ObjectId::parse(&"a".repeat(40));
        let update = |name: &str| RefUpdate { name: name.into(), old: None, new: id.clone() };
        PushRequest { updates: vec![update("refs/heads/a"), update("refs/tags/b")], wants_report, has_side_band }
    }

    #[test]
    fn what_a_client_gets_is_what_it_understands() {
        let done = "000eunpack ok\n0014ok refs/heads/a\n0013ok refs/tags/b\n0000";
        for (wants_report, has_side_band, expected) in [
            (true, false, done.to_owned()),
            (true, true, format!("{:04x}\x01{done}0000", done.len() + 5)),
            (false, true, "0000".to_owned()),
            (false, false, String::new()),
        ] {
            let request = request(wants_report, has_side_band);
            assert_eq!(Report::new(&request).verdict(&Verdict::Done), expected);
        }
        let both = request(true, true);
        assert_eq!(Report::new(&both).messages(["ä"]), "0008\x02ä\n");
        assert_eq!(Report::new(&both).keep_alive(), "0005\x01");
        let plain = request(true, false);
        assert_eq!(Report::new(&plain).messages(["a"]), "");
        assert_eq!(Report::new(&plain).keep_alive(), "");
    }

    #[test]
    fn refusals() {
        let request = request(true, false);
        let refused = Report::new(&request).verdict(&Verdict::Refused("fetch first".into()));
        assert_eq!(refused, "000eunpack ok\n0020ng refs/heads/a fetch first\n001fng refs/tags/b fetch first\n0000");
        let broken = Report::new(&request).verdict(&Verdict::NotUnpacked("eof".into()));
        assert!(broken.starts_with(b"000funpack eof\n") && broken.ends_with(b"unpacker error\n0000"), "{broken:?}");
    }

    #[test]
    fn advertisements() {
        let empty = advertisement(&[]);
        let text = String::from_utf8_lossy(&empty);
        assert!(text.contains(&format!("{} capabilities^{{}}\0report-status ", "0".repeat(40))), "{text}");
        let id = "a".repeat(40);
        let two = advertisement(&[("refs/heads/a".into(), id.clone()), ("refs/tags/b".into(), id.clone())]);
        let text = String::from_utf8_lossy(&two);
        assert!(text.contains(&format!("{id} refs/heads/a\0report")) && text.ends_with("refs/tags/b\n0000"), "{text}");
    }
}
