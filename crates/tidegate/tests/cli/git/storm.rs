//! Pushers on several repositories while the server is killed again and again:
//! at the end the store is what the branches say, whoever was interrupted, and
//! who watched throughout saw each change once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use rustix::process::Signal;
use serde_json::Value;

use super::super::process::{PATIENCE, Running};
use super::{CRD, Hosted, Tree, widget};

const REPOSITORIES: usize = 3;
const COUNTER: &str = "count.yaml";
const KILLS: usize = 6;
/// Between two kills, so that some of them are in the middle of a push.
const PUSHES_PER_KILL: usize = 2;

#[test]
fn pushes_survive_kills() {
    let Hosted { site, mut server, tree } = Hosted::start();
    for index in 0..REPOSITORIES {
        let head = "apiVersion: tidegate.dev/v1\nkind: Repository\n";
        tree.write(&format!("r{index}.yaml"), &format!("{head}metadata: {{name: r{index}, namespace: default}}\n"));
    }
    tree.write("crd.yaml", CRD).commit().pushed();
    let trees: Vec<Tree> =
        (0..REPOSITORIES).map(|index| Tree::clone(&site, &format!("default/r{index}"), &format!("r{index}"))).collect();

    let mut watch = Running::start(&mut site.client("watch widgets -o json"));
    let (pushed, pushes) = channel();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (index, tree) in trees.iter().enumerate() {
            let (pushed, over) = (pushed.clone(), &over);
            scope.spawn(move || pusher(tree, index, &pushed, over));
        }
        for _ in 0..KILLS {
            for _ in 0..PUSHES_PER_KILL {
                pushes.recv_timeout(PATIENCE).unwrap();
            }
            server.signal(Signal::KILL);
            server.wait();
            server = site.serve();
        }
        over.store(true, Ordering::SeqCst);
    });

    let mut expected = BTreeMap::new();
    for (index, tree) in trees.iter().enumerate() {
        tree.git(&["fetch", "-q", "origin"]).good();
        let files = tree.git(&["ls-tree", "--name-only", "origin/main"]).good();
        let commits = tree.git(&["rev-list", "--count", "origin/main"]).good().trim().parse().unwrap();
        let sizes = files.lines().map(|file| (file.replace(".yaml", ""), if file == COUNTER { commits } else { 1 }));
        expected.extend(sizes.map(|(name, size)| (format!("r{index}-{name}"), size)));
    }
    let names: BTreeSet<String> = expected.keys().map(|name| format!("widgets.example.com/{name}")).collect();
    let stored = site.say("get widgets -o name").good();
    assert_eq!(stored.lines().map(str::to_owned).collect::<BTreeSet<_>>(), names);
    assert!(names.len() >= KILLS * PUSHES_PER_KILL, "{names:?}");
    assert_eq!(site.say("repo verify").good().matches("agree").count(), REPOSITORIES + 1);
    follow(&mut watch, &expected);
}

/// Reads the watch until it has told of the last state of each object. Each
/// change comes once: versions only go up, and every size of a counter is one
/// more than the last.
fn follow(watch: &mut Running, expected: &BTreeMap<String, u64>) {
    let (mut seen, mut newest) = (BTreeMap::<String, u64>::new(), 0);
    while seen != *expected {
        let event: Value = serde_json::from_str(&watch.out.next()).unwrap();
        let (name, object) = (event["name"].as_str().unwrap().to_owned(), &event["object"]);
        let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert!(version > newest, "{newest} came before {event}");
        newest = version;
        let size = object["spec"]["size"].as_u64().unwrap();
        match (seen.insert(name, size), event["type"].as_str().unwrap()) {
            (None, "ADDED") => {}
            (Some(before), "MODIFIED") if size == before + 1 => {}
            (before, _) => panic!("after {before:?}: {event}"),
        }
    }
    watch.kill();
    assert_eq!(watch.out.unread(), [""; 0], "nothing more");
}
/// One new file a push, and one that counts the pushes. A push that fails is
/// tried again, as people do.
fn pusher(tree: &Tree, index: usize, pushed: &Sender<()>, over: &AtomicBool) {
    for file in 0.. {
        tree.write(&format!("{file}.yaml"), &widget(&format!("r{index}-{file}"), 1));
        tree.write(COUNTER, &widget(&format!("r{index}-count"), file + 1)).commit();
        while tree.push(&["-q"]).code != Some(0) {
            if over.load(Ordering::SeqCst) {
                return;
            }
        }
        if over.load(Ordering::SeqCst) || pushed.send(()).is_err() {
            return;
        }
    }
}
