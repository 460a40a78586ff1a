//! Readers that go away: of a log, of an answer, of a complaint.

use std::fs;
use std::io::{BufRead, BufReader, Read, pipe};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::process::{QUIET, Site, said};

/// A pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}

fn code(command: &mut Command) -> Option<i32> {
    command.stdin(Stdio::null()).spawn().unwrap().wait().unwrap().code()
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let site = Site::new();
    let mut command = site.serve_command();
    // A line for each request.
    let mut server = command.env("RUST_LOG", "debug").stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("\"message\":\"ready\"")));
    drop(log);
    assert_eq!(site.say("get ns -o name").good(), "namespaces/default\nnamespaces/system\n");
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0), "it drains");
}

#[test]
fn a_watch_ends_with_its_reader() {
    let site = Site::new();
    let _server = site.serve_with(QUIET);
    let mut watch = site.client("watch products -o name").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 5];
    watch.stdout.take().unwrap().read_exact(&mut first).unwrap();
    // Nothing happens that it could write.
    assert_eq!((&first, watch.wait().unwrap().code()), (b"ADDED", Some(0)));
}

#[test]
fn an_answer_that_nobody_reads() {
    let site = Site::new();
    let server = site.serve_with(QUIET);
    fs::create_dir(site.path("bad")).unwrap();
    fs::write(site.path("bad/a.yaml"), "kind: Nothing\n").unwrap();
    for (line, expected) in [
        ("get ns -o yaml", 0),
        ("kinds", 0),
        // Its exit code is its answer.
        ("check bad", 1),
        ("repo verify", 0),
        // Nobody has the token, or the backup.
        ("token create --service-account default/robot", 1),
    ] {
        assert_eq!(code(site.client(line).stdout(unread())), Some(expected), "{line}");
    }
    drop(server);
    assert_eq!(code(site.client("store export -").stdout(unread())), Some(1), "half an export");
    assert_eq!(code(site.client("store check").stdout(unread())), Some(0));
}

#[test]
fn a_complaint_that_nobody_reads() {
    let site = Site::new();
    for line in ["get ns", "store check", "check nowhere"] {
        let heard = said(&mut site.client(line)).code;
        assert!(heard.is_some_and(|code| code == 1 || code == 2), "{line}: {heard:?}");
        assert_eq!(code(site.client(line).stderr(unread())), heard, "{line}");
    }
}
