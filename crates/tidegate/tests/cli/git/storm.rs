//! Pushers on several repositories while the server is killed again and again:
//! at the end the store is what the branches say, whoever was interrupted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use rustix::process::Signal;

use super::super::process::PATIENCE;
use super::{CRD, Hosted, Tree, widget};

const REPOSITORIES: usize = 3;
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

    let mut expected = BTreeSet::new();
    for (index, tree) in trees.iter().enumerate() {
        tree.git(&["fetch", "-q", "origin"]).good();
        let files = tree.git(&["ls-tree", "--name-only", "origin/main"]).good();
        expected
            .extend(files.lines().map(|file| format!("widgets.example.com/r{index}-{}", file.replace(".yaml", ""))));
    }
    let stored = site.say("get widgets -o name").good();
    assert_eq!(stored.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    assert!(expected.len() >= KILLS * PUSHES_PER_KILL, "{expected:?}");
}

/// One file a push. A push that fails is tried again, as people do.
fn pusher(tree: &Tree, index: usize, pushed: &Sender<()>, over: &AtomicBool) {
    for file in 0.. {
        tree.write(&format!("{file}.yaml"), &widget(&format!("r{index}-{file}"), 1)).commit();
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
