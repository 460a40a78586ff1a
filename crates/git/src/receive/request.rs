//! What a push asks for, read as it comes: which refs are to move, and what
//! the client understands. Its objects follow.

use bytes::{Buf, Bytes, BytesMut};

use super::pack_line::{FRAME_BYTES_MAX, Frame, put_line};
use crate::repository::ObjectId;

/// Git locks, writes and syncs each of them, some 3 ms together.
const UPDATES_MAX: usize = 1_000;
/// What a file system takes, and more than a report has room for.
const NAME_BYTES_MAX: usize = 4 << 10;
const NAME_CHARS_SHOWN: usize = 100;

#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    #[error("this is no push as git sends it: use git 1.8 or newer")]
    NotGit,
    #[error("the push ends in the middle of its commands: push again")]
    Unfinished,
    #[error("the push names more than {UPDATES_MAX} refs: push them in several steps")]
    TooMany,
    #[error("`{0}` is no name of a ref that can be stored here: use refs/heads/… or refs/tags/…, as text")]
    Name(String),
    #[error("{0} is to be deleted, and it is not there")]
    Nothing(String),
    #[error("{0}: replacements of objects are not stored here")]
    Replacement(String),
    #[error("{0} is named twice")]
    Twice(String),
}

impl RequestError {
    /// For a client of which nothing else is known; git shows it.
    pub fn report(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        put_line(&mut bytes, format!("ERR {self}").as_bytes());
        bytes.freeze()
    }
}

/// A ref that is to move from what the client saw to what it wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefUpdate {
    pub name: String,
    pub old: Option<ObjectId>,
    /// `None` to delete it.
    pub new: Option<ObjectId>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PushRequest {
    pub updates: Vec<RefUpdate>,
    /// Whether the client wants to be told what became of each ref.
    pub wants_report: bool,
    /// Whether it can be told anything beside that.
    pub has_side_band: bool,
}

impl PushRequest {
    /// A push that only deletes brings nothing.
    pub fn brings_objects(&self) -> bool {
        self.updates.iter().any(|update| update.new.is_some())
    }

    /// Whether the refs are such as can be stored: git itself decides the rest.
    pub fn check(&self) -> Result<(), RequestError> {
        let mut names: Vec<&str> = self.updates.iter().map(|update| &*update.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(RequestError::Twice(twice[0].to_owned()));
        }
        self.updates.iter().try_for_each(RefUpdate::check)
    }

    fn take_capabilities(&mut self, text: &[u8]) {
        for word in text.split(|byte| *byte == b' ') {
            self.wants_report |= word == b"report-status" || word == b"report-status-v2";
            self.has_side_band |= word == b"side-band-64k";
        }
    }
}

impl RefUpdate {
    fn parse(line: &[u8]) -> Result<Self, RequestError> {
        let text = String::from_utf8_lossy(line);
        let mut words = text.splitn(3, ' ');
        let mut next = || words.next().ok_or(RequestError::NotGit);
        let (old, new, name) = (next()?, next()?, next()?);
        let id = |text: &str| side(text).ok_or(RequestError::NotGit);
        let update = Self { name: name.to_owned(), old: id(old)?, new: id(new)? };
        let is_plain = |char: char| !char.is_control() && char != ' ' && char != '\u{fffd}';
        // `refs/x` itself is a place for names, not a name.
        let is_name = name.starts_with("refs/") && name.matches('/').count() > 1 && name.chars().all(is_plain);
        if is_name && name.len() <= NAME_BYTES_MAX {
            return Ok(update);
        }
        Err(RequestError::Name(name.chars().take(NAME_CHARS_SHOWN).flat_map(char::escape_debug).collect()))
    }

    /// A ref that makes one object pass for another harms; to delete it does not.
    fn check(&self) -> Result<(), RequestError> {
        let name = self.name.clone();
        match (&self.old, &self.new) {
            (None, None) => Err(RequestError::Nothing(name)),
            (_, Some(_)) if name.starts_with("refs/replace/") => Err(RequestError::Replacement(name)),
            _ => Ok(()),
        }
    }
}

/// The inner `None` for the zeros that stand for no object.
fn side(text: &str) -> Option<Option<ObjectId>> {
    let is_none = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte == b'0');
    if is_none { Some(None) } else { ObjectId::parse(text).map(Some) }
}

/// Fed until it has read everything before the objects.
#[derive(Default)]
pub struct RequestReader {
    buffer: BytesMut,
    request: PushRequest,
}

impl RequestReader {
    /// The request and what came after it, once it is whole.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<(PushRequest, Bytes)>, RequestError> {
        self.buffer.extend_from_slice(bytes);
        loop {
            let (frame, length) = Frame::first(&self.buffer);
            match frame {
                Frame::Bad => return Err(RequestError::NotGit),
                Frame::Unfinished if self.buffer.len() > FRAME_BYTES_MAX => return Err(RequestError::NotGit),
                Frame::Unfinished => return Ok(None),
                Frame::Flush => {
                    self.buffer.advance(length);
                    let rest = std::mem::take(&mut self.buffer).freeze();
                    return Ok(Some((std::mem::take(&mut self.request), rest)));
                }
                Frame::Line(line) => {
                    take(&mut self.request, line)?;
                    self.buffer.advance(length);
                }
            }
        }
    }
}

fn take(request: &mut PushRequest, line: &[u8]) -> Result<(), RequestError> {
    // Where the client's own history ends. What it pushes has to be whole with
    // what is here, wherever that is.
    if line.starts_with(b"shallow ") {
        return Ok(());
    }
    let (command, capabilities) = match line.iter().position(|byte| *byte == 0) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &b""[..]),
    };
    request.take_capabilities(capabilities);
    request.updates.push(RefUpdate::parse(command)?);
    if request.updates.len() > UPDATES_MAX { Err(RequestError::TooMany) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    fn line(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    fn read(bytes: &[u8]) -> Result<Option<(PushRequest, Bytes)>, RequestError> {
        RequestReader::default().feed(bytes)
    }

    fn request(updates: &[(&str, &str, &str)]) -> PushRequest {
        let update = |(old, new, name): &(&str, &str, &str)| RefUpdate {
            name: (*name).to_owned(),
            old: ObjectId::parse(old),
            new: ObjectId::parse(new),
        };
        PushRequest { updates: updates.iter().map(update).collect(), ..PushRequest::default() }
    }

    #[test]
    fn a_request_in_any_pieces() {
        let first = format!("{ZERO} {A} refs/heads/main\0 report-status side-band-64k agent=git/2");
        let second = format!("{A} {ZERO} refs/heads/old\n");
        let whole = [&*line(&format!("shallow {A}")), &*line(&first), &*line(&second), "0000PACK…"].concat();
        let expected = PushRequest {
            wants_report: true,
            has_side_band: true,
            ..request(&[(ZERO, A, "refs/heads/main"), (A, ZERO, "refs/heads/old")])
        };
        for piece in [1, 7, whole.len()] {
            let mut reader = RequestReader::default();
            let mut rest = Vec::new();
            let mut found = None;
            for bytes in whole.as_bytes().chunks(piece) {
                match found {
                    None => {
                        if let Some((request, more)) = reader.feed(bytes).unwrap() {
                            found = Some(request);
                            rest.extend_from_slice(&more);
                        }
                    }
                    Some(_) => rest.extend_from_slice(bytes),
                }
            }
            assert_eq!(found.as_ref(), Some(&expected), "in pieces of {piece}");
            assert_eq!(rest, "PACK…".as_bytes(), "in pieces of {piece}");
        }
        assert!(expected.brings_objects() && !request(&[(A, ZERO, "refs/heads/x")]).brings_objects());
    }

    #[test]
    fn what_is_none() {
        assert_eq!(read(b"0000"), Ok(Some((PushRequest::default(), Bytes::new()))));
        assert_eq!(read(b"garbage"), Err(RequestError::NotGit));
        assert_eq!(read(line("push-cert\0").as_bytes()), Err(RequestError::NotGit));
        assert_eq!(read(line(&format!("{A} {A}")).as_bytes()), Err(RequestError::NotGit));
        let many = line(&format!("{A} {A} refs/heads/x")).repeat(UPDATES_MAX + 1);
        assert_eq!(read(many.as_bytes()), Err(RequestError::TooMany));
    }

    #[test]
    fn refs_that_can_be_stored() {
        let refused = |updates: &[(&str, &str, &str)]| request(updates).check().map_err(|error| error.to_string());
        let long = format!("refs/heads/{}", "x".repeat(NAME_BYTES_MAX));
        for name in
            ["HEAD", "refs/x", "refs/heads", "refs/heads/a b", "refs/heads/a\u{1}b", "refs/heads/\u{fffd}", &long]
        {
            let error = read(line(&format!("{ZERO} {A} {name}")).as_bytes()).unwrap_err();
            assert!(matches!(&error, RequestError::Name(shown) if shown.len() < 200), "{name:?}: {error}");
        }
        assert!(refused(&[(ZERO, ZERO, "refs/heads/x")]).unwrap_err().contains("not there"));
        assert!(refused(&[(ZERO, A, "refs/replace/x")]).unwrap_err().contains("replacements"));
        assert!(refused(&[(ZERO, A, "refs/a/x"), (A, ZERO, "refs/a/x")]).unwrap_err().contains("twice"));
        assert_eq!(refused(&[(A, ZERO, "refs/replace/x"), (ZERO, A, "refs/heads/ä")]), Ok(()));
    }
}
