//! A server that died between the move of a ref and its projection.

use std::fs;

use rustix::process::Signal;

use super::super::process::said;
use super::{CRD, Hosted, git, widget};

#[test]
fn a_head_that_was_not_projected_is_in_force_after_the_start() {
    let Hosted { site, mut server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    server.signal(Signal::KILL);
    server.wait();
    // What is on disk after such a crash: the ref has moved, nobody projected.
    tree.write("a.yaml", &widget("a", 2)).write("b.yaml", &widget("b", 1)).commit();
    let bare = site.path("tidegate-data/repos/system/control.git");
    said(&mut git(&tree.dir, &["push", "-q", bare.to_str().unwrap(), "HEAD:main"])).good();

    let _server = site.serve();
    assert_eq!(site.say("get widgets -o name").good(), "widgets.example.com/a\nwidgets.example.com/b\n");
    let nothing_left = {
        tree.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]).good();
        tree.pushed()
    };
    assert!(nothing_left.contains("+0 ~0 -0 objects"), "{nothing_left}");
}

/// As when the whole machine, or its container, was killed.
#[test]
fn what_a_killed_git_left_does_not_refuse_the_next_push() {
    let Hosted { site, mut server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    server.kill();
    let bare = site.path("tidegate-data/repos/system/control.git");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 3600);
    for lock in ["refs/heads/main.lock", "packed-refs.lock"] {
        fs::File::create(bare.join(lock)).unwrap().set_modified(long_ago).unwrap();
    }
    let incoming = bare.join("objects/tmp_objdir-incoming-x");
    fs::create_dir(&incoming).unwrap();
    fs::File::open(&incoming).unwrap().set_modified(long_ago).unwrap();

    let _server = site.serve();
    tree.write("a.yaml", &widget("a", 2)).commit().pushed();
    assert!(!incoming.exists());
}

#[test]
fn a_head_that_cannot_be_projected_is_said_by_readiness_and_mended_by_a_push() {
    let Hosted { site, mut server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).commit().pushed();
    server.signal(Signal::KILL);
    server.wait();
    tree.write("a.yaml", &widget("a", 101)).commit();
    let bare = site.path("tidegate-data/repos/system/control.git");
    said(&mut git(&tree.dir, &["push", "-q", bare.to_str().unwrap(), "HEAD:main"])).good();

    let _server = site.serve();
    let (status, reasons) = ready(site.port);
    assert!(status == 503 && reasons.contains("system/control: a.yaml:5: spec.size"), "{reasons}");
    assert!(site.say("get widget a -o yaml").good().contains("size: 1"), "the last good state is in force");

    tree.write("a.yaml", &widget("a", 3)).commit().pushed();
    assert_eq!(ready(site.port).0, 200);
    assert!(site.say("get widget a -o yaml").good().contains("size: 3"));
}

pub fn ready(port: u16) -> (u16, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}
