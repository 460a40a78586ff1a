//! A push that changes a definition: the objects of its kind follow, also
//! those whose files did not change and those of other repositories.

use super::super::process::said;
use super::{CRD, Hosted, Tree, git, widget};

const GOODS: &str = "default/goods";
const REPOSITORY: &str =
    "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {name: goods, namespace: default}\nspec: {}\n";
const SIZE: &str = "{size: {type: integer, maximum: 100}}";

fn crd(properties: &str) -> String {
    let crd = CRD.replace(SIZE, properties);
    assert!(properties == SIZE || crd != CRD);
    crd
}

/// A definition and an object in one repository, two objects in another.
fn two_repositories() -> (Hosted, Tree) {
    let hosted = Hosted::start();
    hosted.tree.write("goods.yaml", REPOSITORY).write("crd.yaml", CRD).write("a.yaml", &widget("a", 1));
    hosted.tree.commit().pushed();
    let goods = Tree::clone(&hosted.site, GOODS, "goods");
    goods.write("b.yaml", &widget("b", 50)).write("deep/er/c.yaml", &widget("c", 60)).commit().pushed();
    (hosted, goods)
}

fn agree(hosted: &Hosted) {
    let said = hosted.site.say("repo verify").good();
    assert_eq!(said.matches("store and main agree").count(), 2, "{said}");
}

#[test]
fn its_objects_are_admitted_anew() {
    let (hosted, goods) = two_repositories();
    let with_color = crd("{size: {type: integer, maximum: 100}, color: {type: string, default: red}}");
    let pushed = hosted.tree.write("crd.yaml", &with_color).commit().pushed();
    assert!(pushed.contains("+0 ~4 -0 objects"), "{pushed}");
    for name in ["a", "b", "c"] {
        assert_eq!(hosted.field(&format!("widget {name}"), "/spec/color"), "red", "{name}");
    }
    let commit = "/metadata/annotations/tidegate.dev~1source-commit";
    assert_eq!(hosted.field("widget a", commit), hosted.tree.head());
    assert_eq!(hosted.field("widget c", commit), goods.head(), "a commit of its own repository");
    agree(&hosted);

    // Without a push of its files, and with one.
    assert!(hosted.tree.write("crd.yaml", CRD).commit().pushed().contains("+0 ~4 -0 objects"));
    agree(&hosted);
    goods.write("b.yaml", &widget("b", 51)).commit().pushed();
    agree(&hosted);
}

#[test]
fn what_would_no_longer_fit_is_named_wherever_it_is() {
    let (hosted, goods) = two_repositories();
    let refused =
        hosted.tree.write("crd.yaml", &crd("{size: {type: integer, maximum: 55, minimum: 2}}")).commit().refused();
    for line in [
        "a.yaml:5: spec.size: Invalid value: 1: should be greater than or equal to 2 (its definition changed in this push: crd.yaml:1)",
        "crd.yaml:1: widgets.example.com default/c of repository default/goods would no longer fit, at deep/er/c.yaml:5: spec.size: change it there first",
    ] {
        assert!(refused.contains(line), "{refused}");
    }
    assert!(!refused.contains("value: 60") && !refused.contains("default/b"), "{refused}");
    agree_at_the_store(&hosted);

    // Once both fit, so does the definition.
    hosted.tree.write("a.yaml", &widget("a", 2)).commit();
    goods.write("deep/er/c.yaml", &widget("c", 55)).commit().pushed();
    assert!(hosted.tree.pushed().contains("+0 ~2 -0 objects"));
    agree(&hosted);
}

/// The branch is where it was.
fn agree_at_the_store(hosted: &Hosted) {
    agree(hosted);
    assert_eq!(hosted.field("widget c", "/spec/size"), "60");
}

/// A server that died between the move of the ref and its projection.
#[test]
fn it_is_done_after_a_crash() {
    let (mut hosted, _goods) = two_repositories();
    hosted.server.kill();
    hosted
        .tree
        .write("crd.yaml", &crd("{size: {type: integer, maximum: 100}, color: {type: string, default: red}}"))
        .commit();
    let bare = hosted.bare();
    said(&mut git(&hosted.tree.dir, &["push", "-q", bare.to_str().unwrap(), "HEAD:main"])).good();
    hosted.server = hosted.site.serve();
    assert_eq!(hosted.field("widget c", "/spec/color"), "red");
    agree(&hosted);
}

/// A repository whose files are lost keeps a definition as it is: nobody could
/// say what its objects become.
#[test]
fn files_that_cannot_be_read_are_named() {
    let (mut hosted, goods) = two_repositories();
    hosted.server.kill();
    let bare = hosted.site.path("tidegate-data/repos/default/goods.git");
    let head = goods.head();
    std::fs::rename(&bare, hosted.site.path("away.git")).unwrap();
    hosted.server = hosted.site.serve();
    let refused = hosted.tree.write("crd.yaml", &crd("{size: {type: integer}}")).commit().refused();
    for part in ["the change concerns objects of repository default/goods", &head, "tidegate repo verify default/goods"]
    {
        assert!(refused.contains(part), "{refused}");
    }
}
