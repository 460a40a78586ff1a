//! Everything that a path may lead to, through one door.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

const NOTE: FileKind = FileKind { what: "the note", bytes_max: 8 };
/// A wait that only has to end.
const SHORT: Duration = Duration::from_millis(20);

/// The text, or the error with its sources; the folder is `DIR`.
fn read(dir: &TempDir, name: &str) -> String {
    let path = dir.path().join(name);
    let read = NOTE.open(&path).and_then(|opened| opened.read_within(SHORT));
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| NOTE.error(&path, Unread::NotText)));
    text.unwrap_or_else(|error| {
        assert!(error.to_string().starts_with("the note "), "{error}");
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        format!("{error}{source}").replace(dir.path().to_str().unwrap(), "DIR")
    })
}

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn whatever_it_is_there_is_an_answer() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (name, content) in [("plain", "12345678"), ("large", "123456789"), ("empty", "")] {
        fs::write(at(name), content).unwrap();
    }
    fs::write(at("latin1"), b"caf\xe9").unwrap();
    fs::create_dir(at("folder")).unwrap();
    std::os::unix::fs::symlink("plain", at("link")).unwrap();
    std::os::unix::fs::symlink("loop", at("loop")).unwrap();
    make_pipe(&at("pipe"));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    for (name, expected) in [
        ("plain", "12345678"),
        ("link", "12345678"),
        ("empty", ""),
        ("/dev/null", ""),
        ("large", "the note DIR/large has more than 8 bytes: is it the right file?"),
        ("/dev/zero", "the note /dev/zero has more than 8 bytes: is it the right file?"),
        ("latin1", "the note DIR/latin1 is not UTF-8 text: is it the right file?"),
        ("folder", "the note DIR/folder is a directory: name a file in it"),
        ("missing", "the note DIR/missing does not exist: check its name"),
        ("plain/x", "the note DIR/plain/x cannot be read: Not a directory (os error 20)"),
        ("loop", "the note DIR/loop cannot be read: Too many levels of symbolic links (os error 40)"),
        ("socket", "the note DIR/socket cannot be read: No such device or address (os error 6)"),
        ("pipe", "the note DIR/pipe has no end after 10 s: name a plain file, or a pipe that somebody writes to"),
    ] {
        assert_eq!(read(&dir, name), expected, "{name}");
    }
}

/// Root may read everything: then there is nothing to see.
#[test]
fn what_this_user_may_not_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("closed");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let expected = match rustix::process::geteuid().is_root() {
        true => "x",
        false => "the note DIR/closed may not be read by this user: change its owner or its mode",
    };
    assert_eq!(read(&dir, "closed"), expected);
    let error = Unread::from(io::Error::from(ErrorKind::PermissionDenied));
    assert!(matches!(error, Unread::Forbidden), "{error}");
}

/// As a shell's `<(command)` is one.
#[test]
fn a_pipe_is_read_to_its_end_in_as_many_pieces_as_it_comes() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("pipe");
    make_pipe(&path);
    let opened = NOTE.open(&path).unwrap();
    let reader = std::thread::scope(|scope| {
        let reader = scope.spawn(|| opened.read());
        let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
        for piece in ["ab", "cd", "e"] {
            writer.write_all(piece.as_bytes()).unwrap();
        }
        drop(writer);
        reader.join().unwrap()
    });
    assert_eq!(reader.unwrap(), b"abcde");
}

/// One that writes a piece and then nothing is not waited for, either.
#[test]
fn a_writer_that_stops_in_the_middle() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("pipe");
    make_pipe(&path);
    let opened = NOTE.open(&path).unwrap();
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(b"ab").unwrap();
    let error = opened.read_within(SHORT).unwrap_err();
    assert!(matches!(error.reason, Unread::Silent), "{error}");
    drop(writer);
}

#[test]
fn text_is_text() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("text"), "ü").unwrap();
    assert_eq!(NOTE.read_text(&dir.path().join("text")).unwrap(), "ü");
    fs::write(dir.path().join("text"), b"\xff").unwrap();
    assert!(matches!(NOTE.read_text(&dir.path().join("text")).unwrap_err().reason, Unread::NotText));
}
