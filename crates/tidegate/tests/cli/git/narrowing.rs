//! A Repository whose rules become narrower than what it has in force.

use super::recovery::ready;
use super::{CRD, Hosted, Tree, widget};

fn repository(spec: &str) -> String {
    format!(
        "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: goods, namespace: default}}\nspec:\n{spec}"
    )
}

#[test]
fn what_is_in_force_stays_allowed() {
    let Hosted { site, server: _server, tree } = Hosted::start();
    let shop = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let wide = repository("  path: deploy\n  namespaces: [default, shop]\n");
    tree.write("crd.yaml", CRD).write("shop.yaml", shop).write("goods.yaml", &wide).commit().pushed();
    let goods = Tree::clone(&site, "default/goods", "goods");
    let in_shop = |name: &str| widget(name, 1).replace("namespace: default", "namespace: shop");
    goods.write("deploy/a.yaml", &widget("a", 1)).write("deploy/b.yaml", &in_shop("b"));
    goods.write("deploy/sub/c.yaml", &in_shop("c")).write("unused.yaml", &in_shop("d"));
    goods.write("deploy/.hidden/e.yaml", &in_shop("e")).commit().pushed();

    let narrow = repository("  path: deploy\n  namespaces: [default]\n");
    let refused = tree.write("goods.yaml", &narrow).commit().refused();
    let told = "goods.yaml:6: spec.namespaces: 2 objects of repository default/goods would be outside of what it may \
                define, first widgets.example.com shop/b at deploy/b.yaml:1: change that there first";
    assert!(refused.contains(told), "{refused}");
    assert_eq!(ready(site.port).0, 200);
    assert!(site.say("repo verify").good().matches("agree").count() == 2);

    goods.git(&["rm", "-q", "-r", "deploy/b.yaml", "deploy/sub"]).good();
    goods.commit().pushed();
    assert!(tree.pushed().contains("+0 ~1 -0 objects"));
    assert!(site.say("repo verify").good().matches("agree").count() == 2);
    let refused = goods.write("deploy/b.yaml", &in_shop("b")).commit().refused();
    assert!(refused.contains("may not define objects in shop: add it to its spec.namespaces"), "{refused}");
}

/// Another folder is projected at once: what was outside of it goes.
#[test]
fn another_folder_takes_its_objects_with_it() {
    let Hosted { site, server: _server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).write("goods.yaml", &repository("  path: ''\n")).commit().pushed();
    let goods = Tree::clone(&site, "default/goods", "goods");
    goods.write("deploy/a.yaml", &widget("a", 1)).write("b.yaml", &widget("b", 1)).commit().pushed();
    tree.write("goods.yaml", &repository("  path: deploy\n")).commit().pushed();
    super::deleted::wait_until("the folder is projected", || {
        site.say("get widgets -o name").good() == "widgets.example.com/a\n"
    });
    assert!(site.say("repo verify").good().matches("agree").count() == 2);
}

/// One letter would take all objects away.
#[test]
fn a_place_that_is_not_there_is_refused_while_anything_is_in_force() {
    let Hosted { site, server: _server, tree } = Hosted::start();
    tree.write("crd.yaml", CRD).write("goods.yaml", &repository("  branch: trunk\n")).commit().pushed();
    // Nothing is in force yet, so nothing can go.
    tree.write("goods.yaml", &repository("  branch: main\n")).commit().pushed();
    let goods = Tree::clone(&site, "default/goods", "goods");
    goods.write("deploy/a.yaml", &widget("a", 1)).write("b.yaml", &widget("b", 1)).commit().pushed();
    for (spec, told) in [
        (
            "  branch: mian\n",
            "goods.yaml:5: spec.branch: repository default/goods has no branch `mian`, and its 2 objects in force would go: push the branch first",
        ),
        (
            "  branch: main\n  path: deplyo\n",
            "goods.yaml:6: spec.path: repository default/goods has no folder `deplyo` on main, and its 2 objects in force would go: push it first",
        ),
    ] {
        let refused = tree.write("goods.yaml", &repository(spec)).commit().refused();
        assert!(refused.contains(told), "{refused}");
    }
    assert_eq!(site.say("get widgets -o name").good().lines().count(), 2);
    goods.git(&["push", "-q", "origin", "HEAD:refs/heads/mian"]).good();
    tree.write("goods.yaml", &repository("  branch: mian\n  path: deploy\n")).commit().pushed();
    super::deleted::wait_until("the folder is projected", || {
        site.say("get widgets -o name").good() == "widgets.example.com/a\n"
    });
}

#[test]
fn a_branch_that_git_does_not_know_is_refused() {
    let Hosted { site: _site, server: _server, tree } = Hosted::start();
    let refused = tree.write("goods.yaml", &repository("  branch: a..b\n")).commit().refused();
    assert!(
        refused.contains("goods.yaml:5: spec.branch: Invalid value: \"a..b\": must be a name that git takes"),
        "{refused}"
    );
}
