//! A Repository object that is deleted: what it defined goes with it, its data
//! is kept for a while.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

pub use super::super::process::until as wait_until;
use super::super::process::{Site, said, until};
use super::{CRD, Hosted, Tree, admin, git, url, widget};

const GOODS: &str = "default/goods";
const REPOSITORY: &str = "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: goods, namespace: default}\n\
                          spec: {allowClusterScoped: true}\n";

/// With a kind and two objects of it, defined by a repository of its own.
fn with_goods(flags: &[&str]) -> Hosted {
    let hosted = Hosted::start_with(flags);
    hosted.tree.write("goods.yaml", REPOSITORY).commit().pushed();
    let goods = Tree::clone(&hosted.site, GOODS, "goods");
    goods.write("crd.yaml", CRD).write("a.yaml", &widget("a", 1)).write("b.yaml", &widget("b", 1)).commit().pushed();
    hosted
}

fn delete(hosted: &Hosted) {
    hosted.tree.git(&["rm", "-q", "goods.yaml"]).good();
    assert!(hosted.tree.commit().pushed().contains("+0 ~0 -1 objects"));
}

/// The directories of deleted repositories.
fn kept(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(site.path("tidegate-data/repos/.deleted/default")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn one_of_the_same_name_starts_empty_and_the_old_one_can_be_pushed_back() {
    let hosted = with_goods(&[]);
    let address = url(&hosted.site, GOODS, &admin(&hosted.site));
    delete(&hosted);
    let gone = said(&mut git(&hosted.site.path(""), &["ls-remote", &address]));
    assert_eq!(gone.code, Some(128), "{}", gone.err);
    // At once, whether or not the old one is put away yet.
    hosted.tree.write("goods.yaml", REPOSITORY).commit().pushed();
    assert_eq!(said(&mut git(&hosted.site.path(""), &["ls-remote", &address])).good(), "");
    assert!(!hosted.site.say("kinds").good().contains("widgets"));

    let kept = kept(&hosted.site);
    assert_eq!(kept.len(), 1, "{kept:?}");
    let said = said(&mut git(&kept[0], &["push", &address, "main:main"]));
    assert!(said.code == Some(0) && said.err.contains("+3 ~0 -0 objects"), "{}", said.err);
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/a\nwidgets.example.com/b\n");
}

#[test]
fn a_server_that_dies_finishes_it_before_it_is_ready() {
    let mut hosted = with_goods(&[]);
    delete(&hosted);
    hosted.server.signal(Signal::KILL);
    hosted.server.wait();
    hosted.server = hosted.site.serve();
    assert!(!hosted.site.say("kinds").good().contains("widgets"));
    assert_eq!(kept(&hosted.site).len(), 1);
    assert!(!hosted.site.path("tidegate-data/repos/default/goods.git").exists());
    assert_eq!(super::recovery::ready(hosted.site.port).0, 200);
}

/// What a crash after the objects, and one after the directory, leave behind.
#[test]
fn it_is_done_again_from_any_step() {
    let mut hosted = with_goods(&[]);
    let live = hosted.site.path("tidegate-data/repos/default/goods.git");
    delete(&hosted);
    until("it is put away", || !kept(&hosted.site).is_empty());
    hosted.server.signal(Signal::KILL);
    hosted.server.wait();
    // The sign that it has to go may still be there, its directory is not.
    hosted.server = hosted.site.serve();
    assert!(!live.exists());
    hosted.tree.write("goods.yaml", REPOSITORY).commit().pushed();
    let goods = Tree::clone(&hosted.site, GOODS, "again");
    goods.write("crd.yaml", CRD).write("c.yaml", &widget("c", 1)).commit().pushed();
    // A restart takes nothing of the new one for the old one's.
    hosted.server.signal(Signal::KILL);
    hosted.server.wait();
    hosted.server = hosted.site.serve();
    assert_eq!(hosted.site.say("get widgets -o name").good(), "widgets.example.com/c\n");
    assert!(live.exists() && kept(&hosted.site).len() == 1);
}

/// A kind stays as long as somebody else's objects are of it.
#[test]
fn what_others_need_stays_until_they_do_not() {
    let hosted = with_goods(&["--set", "git.deleted_grace=1s"]);
    hosted.tree.write("c.yaml", &widget("c", 1)).commit().pushed();
    delete(&hosted);
    until("its objects go", || hosted.site.say("get widgets -o name").good() == "widgets.example.com/c\n");
    assert_eq!(super::recovery::ready(hosted.site.port).0, 200);
    hosted.tree.git(&["rm", "-q", "c.yaml"]).good();
    hosted.tree.commit().pushed();
    until("the kind goes", || !hosted.site.say("kinds").good().contains("widgets"));
    let live = hosted.site.path("tidegate-data/repos/default/goods.git");
    until("its data goes", || !live.exists() && kept(&hosted.site).is_empty());
}
