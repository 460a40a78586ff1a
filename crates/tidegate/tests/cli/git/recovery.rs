//! A server that died between the move of a ref and its projection.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use rustix::process::Signal;

use super::super::process::{said, until};
use super::{CRD, Hosted, Tree, admin, git, widget};

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

/// It would move the branch after the server that is there now has looked at it.
#[test]
fn a_push_that_outlived_its_server_ends_before_the_next_one_is_ready() {
    let Hosted { site, mut server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).commit().pushed();
    server.kill();
    let bare = site.path("tidegate-data/repos/system/control.git").canonicalize().unwrap();
    let bare = bare.to_str().unwrap();
    // Waits for the end of what it is told.
    let mut orphan = git(&tree.dir, &["-c", "a.b=c", "--git-dir", bare, "update-ref", "--stdin"]);
    let mut orphan = orphan.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut elsewhere = git(&tree.dir, &["--git-dir", ".git", "update-ref", "--stdin"]);
    let mut elsewhere = elsewhere.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();

    let _server = site.serve();
    assert_eq!(orphan.wait().unwrap().signal(), Some(9));
    assert!(elsewhere.try_wait().unwrap().is_none(), "not a repository of this server");
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
    tree.write("a.yaml", &widget("a", 1)).commit().pushed();
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

/// The note on the Repository object is written after the transaction that
/// it is about: a crash in between leaves it behind.
#[test]
fn a_note_that_was_not_written_is_written_after_the_start() {
    let mut hosted = Hosted::start();
    let repository =
        "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: goods, namespace: default}\nspec: {}\n";
    hosted.tree.write("crd.yaml", CRD).write("goods.yaml", repository).commit().pushed();
    let goods = Tree::clone(&hosted.site, "default/goods", "goods");
    goods.write("a.yaml", &widget("a", 1)).commit().pushed();
    let noted = |hosted: &Hosted, commit: &str, objects: usize| {
        until("it is noted", || {
            let text = hosted.site.say("get repository goods -o json").good();
            let object: serde_json::Value = serde_json::from_str(&text).unwrap();
            let note = &object["status"]["inForce"];
            note["commit"] == commit && note["objects"] == objects
        });
    };
    let first = goods.head();
    noted(&hosted, &first, 1);
    goods.write("b.yaml", &widget("b", 1)).commit().pushed();
    noted(&hosted, &goods.head(), 2);
    // As such a crash leaves it: the old note with the new state.
    let version = hosted.field("repository goods", "/metadata/resourceVersion");
    let note = format!(
        r#"mutation {{ updateResourceStatus(input: {{apiVersion: "tidegate.dev/v1", kind: "Repository",
           namespace: "default", name: "goods", resourceVersion: "{version}",
           status: {{inForce: {{commit: "{first}", objects: 1}}}}}}) {{ name }} }}"#
    );
    let answer = graphql(&hosted, &note);
    assert!(answer.contains(r#""name":"goods""#), "{answer}");
    hosted.server.kill();
    hosted.server = hosted.site.serve();
    noted(&hosted, &goods.head(), 2);

    // And wherever a kill right after a push happens to come.
    for size in 2..6 {
        goods.write("a.yaml", &widget("a", size)).commit().pushed();
        hosted.server.kill();
        hosted.server = hosted.site.serve();
        noted(&hosted, &goods.head(), 2);
        assert_eq!(hosted.field("widget a", "/spec/size"), size.to_string());
    }
}

fn graphql(hosted: &Hosted, query: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", hosted.site.port)).unwrap();
    let body = serde_json::json!({"query": query}).to_string();
    let (token, length) = (admin(&hosted.site), body.len());
    let head = "POST /graphql HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}authorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub fn ready(port: u16) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}
