//! A store and repositories that are not of the same moment, as after a backup
//! of one of them was restored.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::super::process::{Running, Site, said};
use super::{CRD, Hosted, Tree, widget};

fn stop(server: &mut Running) {
    server.signal(Signal::TERM);
    server.wait();
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    said(Command::new("cp").arg("-r").arg(from).arg(to)).good();
}

/// Two pushes, a backup of `part` between them, restored after the second.
fn with_an_older(part: &str) -> (Site, Tree) {
    let Hosted { site, mut server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).write("b.yaml", &widget("b", 1)).commit().pushed();
    stop(&mut server);
    let part = site.path(&format!("tidegate-data/{part}"));
    copy(&part, &site.path("backup"));
    let mut server = site.serve();
    fs::remove_file(tree.dir.join("b.yaml")).unwrap();
    tree.write("a.yaml", &widget("a", 2)).write("c.yaml", &widget("c", 1)).commit().pushed();
    stop(&mut server);
    copy(&site.path("backup"), &part);
    (site, tree)
}

#[test]
fn an_older_store_catches_up_with_git() {
    let (site, _tree) = with_an_older("store");
    let _server = site.serve();
    assert_eq!(site.say("get widgets -o name").good(), "widgets.example.com/a\nwidgets.example.com/c\n");
    assert!(site.say("repo verify").good().contains("system/control: store and main agree"));
}

#[test]
fn an_older_repository_is_named_compared_and_mended_from() {
    let (site, tree) = with_an_older("repos");
    let _server = site.serve();
    let found = site.say("repo verify system/control");
    assert_eq!(found.code, Some(1), "{}", found.err);
    for text in [
        "default/a: different in the store",
        "default/b: missing in the store",
        "default/c: in the store, not in Git",
        "1 missing, 1 different, 1 extra objects",
        "next: `tidegate repo verify system/control --repair`",
    ] {
        assert!(found.out.contains(text), "no {text:?} in {}", found.out);
    }
    // Nothing is in force but what was; a push is told why it cannot be.
    assert_eq!(site.say("get widgets -o name").good(), "widgets.example.com/a\nwidgets.example.com/c\n");
    tree.git(&["reset", "-q", "--hard", "HEAD~1"]).good();
    tree.write("a.yaml", &widget("a", 5)).commit();
    let told = tree.refused();
    assert!(told.contains("is not in the repository") && told.contains("tidegate repo verify"), "{told}");
    assert!(told.contains("refused: nothing has changed"), "{told}");

    let mended = site.say("repo verify --repair").good();
    assert!(mended.contains("mended from Git, resourceVersion"), "{mended}");
    assert_eq!(site.say("get widgets -o name").good(), "widgets.example.com/a\nwidgets.example.com/b\n");
    assert!(site.say("repo verify").good().contains("agree at"));
    assert!(tree.pushed().contains("+0 ~1 -0 objects"));
}

/// Whoever has the commit that is missing brings it back.
#[test]
fn an_older_repository_is_settled_by_a_push_of_what_it_lacks() {
    let (site, tree) = with_an_older("repos");
    let _server = site.serve();
    assert!(tree.pushed().contains("+0 ~0 -0 objects"));
    assert!(site.say("repo verify").good().contains("agree at"));
    assert_eq!(super::recovery::ready(site.port).0, 200);
}

#[test]
fn a_repository_that_nobody_may_push_to_is_not_mended_by_them() {
    let hosted = Hosted::start();
    let refused = hosted.site.say("repo verify system/nothing");
    assert!(refused.code == Some(1) && refused.err.contains("there is no hosted repository"), "{}", refused.err);
    let empty = hosted.site.say("repo verify").good();
    assert!(empty.contains("agree: nothing has been pushed"), "{empty}");
    let wrong = hosted.site.say("repo verify nonsense");
    assert!(wrong.code == Some(2) && wrong.err.contains("NAMESPACE/NAME"), "{}", wrong.err);
}
