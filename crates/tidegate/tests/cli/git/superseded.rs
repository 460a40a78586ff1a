//! A Repository that is deleted while it is fetched.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use super::super::process::{PATIENCE, until};
use super::{CRD, Hosted, Tree, admin, widget};

const SOURCE: &str = "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: source, namespace: default}\n\
                      spec: {path: unused}\n";
const MIRROR: &str = "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: mirror, namespace: default}\n";

/// A way to a server that lets nobody pass until it is opened.
struct Gate {
    port: u16,
    /// Somebody waits.
    arrived: mpsc::Receiver<()>,
    open: mpsc::Sender<()>,
}

impl Gate {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let (arrived, arrivals) = mpsc::channel();
        let (open, opened) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = arrived.send(());
                // Once it was opened, for good.
                let _ = opened.recv();
                join(stream.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            }
        });
        Self { port: own_port, arrived: arrivals, open }
    }

    fn open(self) {
        drop(self.open);
    }
}

fn join(near: TcpStream, far: TcpStream) {
    for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
}

/// A server with a repository whose first fetch is under way, and the gate
/// that it waits at.
fn fetching() -> (Hosted, Hosted, Gate) {
    let host = Hosted::start();
    host.tree.write("source.yaml", SOURCE).commit().pushed();
    Tree::clone(&host.site, "default/source", "source").write("a.yaml", &widget("a", 1)).commit().pushed();
    let near = Hosted::start_with(&["--secrets-dir", "secrets"]);
    let secret = near.site.path("secrets/default/login");
    std::fs::create_dir_all(&secret).unwrap();
    std::fs::write(secret.join("username"), "anybody").unwrap();
    std::fs::write(secret.join("password"), admin(&host.site)).unwrap();
    let gate = Gate::to(host.site.port);
    let url = format!("http://127.0.0.1:{}/git/default/source.git", gate.port);
    let spec = format!("spec:\n  remote: {{url: '{url}', interval: 1h, secretRef: {{name: login}}}}\n");
    near.tree.write("crd.yaml", CRD).write("mirror.yaml", &format!("{MIRROR}{spec}")).commit().pushed();
    gate.arrived.recv_timeout(PATIENCE).expect("a fetch");
    (host, near, gate)
}

/// Everything below the folder of repositories, but for the control repository.
fn left(near: &Hosted) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![near.site.path("tidegate-data/repos/default")];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            found.push(path.display().to_string());
            pending.extend(path.is_dir().then_some(path));
        }
    }
    found
}

#[test]
fn a_repository_that_is_deleted_during_a_fetch_leaves_nothing() {
    let (_host, near, gate) = fetching();
    near.tree.git(&["rm", "-q", "mirror.yaml"]).good();
    near.tree.commit().pushed();
    until("it is put away", || left(&near).is_empty());
    gate.open();
    // The next look at it comes after the fetch.
    let gone = near.site.say("repo sync default/mirror");
    assert_eq!(gone.code, Some(1), "{}{}", gone.out, gone.err);
    assert_eq!(left(&near), [""; 0]);
    assert_eq!(near.site.say("get widgets -o name").good(), "");
    assert_eq!(near.site.say("repo verify").good().matches("agree").count(), 1);
}

/// Another of the same name, hosted here: nothing of the old one's fetch is in it.
#[test]
fn one_of_the_same_name_has_nothing_of_it() {
    let (_host, near, gate) = fetching();
    near.tree.git(&["rm", "-q", "mirror.yaml"]).good();
    near.tree.commit().pushed();
    near.tree.write("mirror.yaml", MIRROR).commit().pushed();
    let mirror = Tree::clone(&near.site, "default/mirror", "mirror");
    gate.open();
    near.site.say("repo sync default/mirror").good();
    let bare = near.site.path("tidegate-data/repos/default/mirror.git");
    let refs = super::super::process::said(&mut super::git(&bare, &["for-each-ref"])).good();
    assert_eq!(refs, "");
    let objects = super::super::process::said(&mut super::git(&bare, &["count-objects", "-v"])).good();
    assert!(objects.contains("count: 0\n") && objects.contains("in-pack: 0\n"), "{objects}");
    mirror.write("b.yaml", &widget("b", 1)).commit().pushed();
    assert_eq!(near.site.say("get widgets -o name").good(), "widgets.example.com/b\n");
}
