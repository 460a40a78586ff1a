//! A server that died between the move of a ref and its projection.

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
