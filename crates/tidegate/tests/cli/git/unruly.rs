//! Clients that break off, lie or flood: the server is unharmed, and nothing
//! of theirs is stored.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::super::process::{said, until};
use super::super::watch::metrics;
use super::{CRD, Hosted, admin, git, widget};

/// A push that announces `length` bytes, of which none is sent yet.
fn begin(hosted: &Hosted, headers: &str, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", hosted.site.port)).unwrap();
    let token = admin(&hosted.site);
    write!(
        stream,
        "POST /git/system/control.git/git-receive-pack HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/x-git-receive-pack-request\r\n{headers}\
         content-length: {length}\r\n\r\n"
    )
    .unwrap();
    stream
}

/// A push of `body` that announces `length` bytes; what is answered.
fn post(hosted: &Hosted, headers: &str, length: usize, body: &[u8]) -> String {
    let mut stream = begin(hosted, headers, length);
    // The server may have answered, or broken off, before it has read all.
    let _ = stream.write_all(body);
    if body.len() < length {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// What git itself would send for a push of the tree's head to main.
fn request(hosted: &Hosted) -> Vec<u8> {
    let head = hosted.tree.head();
    let command = format!("{} {head} refs/heads/main\0 report-status", "0".repeat(40));
    let mut body = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    let pack = git(&hosted.tree.dir, &["pack-objects", "--all", "--stdout", "-q"]).output().unwrap();
    assert!(pack.status.success());
    body.extend(pack.stdout);
    body
}

fn prepared() -> (Hosted, Vec<u8>) {
    prepared_with(&[])
}

fn prepared_with(flags: &[&str]) -> (Hosted, Vec<u8>) {
    let hosted = Hosted::start_with(flags);
    hosted.tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit();
    let body = request(&hosted);
    (hosted, body)
}

#[test]
fn a_whole_request_by_hand_is_a_push() {
    let (hosted, body) = prepared();
    let answer = post(&hosted, "", body.len(), &body);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("ok refs/heads/main"), "{answer}");
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
}

/// It says that it sends nothing more, and waits for the answer.
#[test]
fn a_client_that_closes_its_side_is_answered() {
    let (hosted, body) = prepared();
    let sent = |body: &[u8]| {
        let mut stream = begin(&hosted, "", body.len());
        stream.write_all(body).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = sent(&body[..60]);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("in the middle of its commands"), "{answer}");
    let answer = sent(b"");
    assert!(answer.contains("in the middle of its commands"), "{answer}");
    let answer = sent(&body);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("ok refs/heads/main"), "{answer}");
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
}

/// At any point of a request: what it held is given back.
#[test]
fn nothing_is_kept_for_clients_that_are_gone() {
    let (hosted, body) = prepared();
    let open = || {
        let metrics = metrics(hosted.site.port, &admin(&hosted.site));
        let line = metrics.lines().find_map(|line| line.strip_prefix("tidegate_http_connections "));
        line.unwrap_or_else(|| panic!("{metrics}")).to_owned()
    };
    let alone = open();
    for sent in [0, 30, body.len() / 2, body.len() - 1, body.len()] {
        for closes_first in [false, true] {
            let mut stream = begin(&hosted, "", body.len());
            stream.write_all(&body[..sent]).unwrap();
            if closes_first {
                stream.shutdown(Shutdown::Write).unwrap();
            }
        }
    }
    until("the connections are closed", || open() == alone);
    // One that was whole may be under way still, or be in force.
    until("a push is taken", || hosted.tree.push(&[]).code == Some(0));
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
}

#[test]
fn a_gzipped_request_is_a_push() {
    let (hosted, body) = prepared();
    let plain = hosted.site.path("body");
    std::fs::write(&plain, &body).unwrap();
    let packed = std::process::Command::new("gzip").arg("-c").arg(&plain).output().unwrap().stdout;
    let answer = post(&hosted, "content-encoding: gzip\r\n", packed.len(), &packed);
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
}

#[test]
fn what_is_broken_moves_nothing() {
    let (hosted, body) = prepared();
    let half = &body[..body.len() - 30];
    let mut wrong = body.clone();
    *wrong.last_mut().unwrap() ^= 1;
    let cases: [(&str, &str, usize, &[u8]); 6] = [
        ("a client that vanishes", "", body.len(), half),
        ("a truncated pack", "", half.len(), half),
        ("a pack with a wrong checksum", "", wrong.len(), &wrong),
        ("no pack-line at all", "", 7, b"garbage"),
        ("gzip that is none", "content-encoding: gzip\r\n", body.len(), &body),
        ("an unknown encoding", "content-encoding: br\r\n", body.len(), &body),
    ];
    for (what, headers, length, sent) in cases {
        let answer = post(&hosted, headers, length, sent);
        assert!(!answer.contains("ok refs/heads/main"), "{what}: {answer}");
        let branch = said(&mut git(&hosted.bare(), &["rev-parse", "--verify", "-q", "main"]));
        assert_eq!(branch.code, Some(1), "{what}: the branch is there");
    }
    assert!(!hosted.site.say("kinds").good().contains("widgets"));
    // The server goes on as if nothing had been.
    hosted.tree.pushed();
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\n");
}

/// Its pack is whole, but the commit that it names is not in it.
#[test]
fn a_commit_that_does_not_come_along() {
    let (hosted, body) = prepared();
    let text = String::from_utf8_lossy(&body[..41 + 40 + 4]).into_owned();
    let head = hosted.tree.head();
    assert!(text.contains(&head), "{text}");
    let absent = "1".repeat(40);
    let at = 4 + 41;
    let mut body = body;
    body[at..at + 40].copy_from_slice(absent.as_bytes());
    let answer = post(&hosted, "", body.len(), &body);
    assert!(answer.contains("missing necessary objects") && !answer.contains("the server failed"), "{answer}");
    assert_eq!(hosted.site.say("get widgets -o name").code, Some(1));
}

#[test]
fn more_than_a_push_may_be_is_refused_before_it_is_read() {
    let (hosted, body) = prepared();
    let answer = post(&hosted, "", 2 << 30, &body);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[test]
fn a_client_that_trickles_is_let_go() {
    let (hosted, body) = prepared_with(&["--set", "git.stall_timeout=2s"]);
    let mut stream = begin(&hosted, "", body.len());
    let mut writer = stream.try_clone().unwrap();
    let (count, announced) = (body.len(), body.clone());
    // Its pace, not a wait for anything: one byte a second, until it is cut off.
    let trickle = std::thread::spawn(move || {
        announced
            .iter()
            .take_while(|byte| {
                std::thread::sleep(std::time::Duration::from_secs(1));
                writer.write_all(&[**byte]).is_ok()
            })
            .count()
    });
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let _ = stream.shutdown(Shutdown::Both);
    assert!(trickle.join().unwrap() < count);
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("ok refs/heads/main"), "{answer}");
    assert_eq!(said(&mut git(&hosted.bare(), &["rev-parse", "--verify", "-q", "main"])).code, Some(1));
    hosted.tree.pushed();
}
