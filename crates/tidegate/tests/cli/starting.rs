//! A server that is told to end while it still starts. A gate holds the start
//! at one place, so that the signal comes there.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;

use super::process::{Running, Site, until};

/// In place of a file: whoever reads it waits for us.
struct Gate {
    path: PathBuf,
    content: Option<Vec<u8>>,
}

impl Gate {
    fn new(path: PathBuf) -> Self {
        let content = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self { path, content }
    }

    /// Somebody stands before it, and waits for as long as the answer is kept.
    fn reached(&self) -> fs::File {
        let open = || {
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            fs::OpenOptions::new().write(true).custom_flags(flags).open(&self.path)
        };
        let mut opened = None;
        until("a reader of the gate", || {
            opened = open().ok();
            opened.is_some()
        });
        opened.unwrap()
    }

    /// As it was.
    fn remove(self) {
        fs::remove_file(&self.path).unwrap();
        if let Some(content) = self.content {
            fs::write(&self.path, content).unwrap();
        }
    }
}

/// A client that came too early is told, and so is whoever reads the log.
fn end(mut server: Running, port: u16, signal: Signal) {
    let mut early = TcpStream::connect(("127.0.0.1", port)).unwrap();
    early.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    server.signal(signal);
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("shutting down"), "{answer}");
    assert_eq!(server.wait().code(), Some(0), "{}", server.err.rest());
    let log = server.err.rest();
    assert!(log.contains("stopped before it was ready") && !log.contains("\"ready\""), "{log}");
}

fn is_good(site: &Site) {
    let mut server = site.serve();
    assert_eq!(site.say("get products -o name").good().lines().count(), 2);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn while_the_store_is_opened() {
    let site = Site::new();
    is_good(&site);
    for signal in [Signal::TERM, Signal::INT] {
        let gate = Gate::new(site.path("tidegate-data/store/tables"));
        let server = Running::start(&mut site.serve_command());
        let held = gate.reached();
        end(server, site.port, signal);
        drop(held);
        gate.remove();
        is_good(&site);
    }
}

/// The first start of all, in the middle of `git init`.
#[test]
fn while_git_works() {
    let site = Site::new();
    let gate = Gate::new(site.path("gate"));
    let programs = site.path("programs");
    write_held_git(&programs, &gate.path);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let server = Running::start(site.serve_command().env("PATH", path));
    let held = gate.reached();
    end(server, site.port, Signal::TERM);
    // It was ended with the server: nobody reads what it waits for.
    until("the end of git", || (&held).write(b"x").is_err());
    gate.remove();
    is_good(&site);
}

/// A git that waits at the gate whatever it is to do, once it has told its
/// version.
fn write_held_git(folder: &Path, gate: &Path) {
    let found = std::process::Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let git = String::from_utf8(found.stdout).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' --version '*|*' version '*) exec {git} \"$@\";; esac\nexec cat {}\n",
        gate.display(),
        git = git.trim()
    );
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("git"), script).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_second_signal_does_not_wait() {
    let site = Site::new();
    is_good(&site);
    let gate = Gate::new(site.path("tidegate-data/store/tables"));
    let mut server = Running::start(&mut site.serve_command());
    let _held = gate.reached();
    // The store that is being opened is waited for, but for that.
    server.signal(Signal::TERM);
    server.signal(Signal::INT);
    let code = server.wait().code();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    gate.remove();
    is_good(&site);
}
