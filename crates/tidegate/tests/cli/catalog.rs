//! The example shop, pushed to a real server that reconciles it.

use std::path::Path;

use serde_json::{Value, json};

use super::git::Hosted;
use super::process::{Site, until};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn list(site: &Site, kind: &str) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&site.say(&format!("get {kind} -A -o json")).good()).unwrap();
    listed["items"].as_array().unwrap().clone()
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    object["status"]["observedGeneration"] == object["metadata"]["generation"] && conditions.iter().any(ready)
}

#[test]
fn the_shop_is_pushed_moved_around_and_removed() {
    let Hosted { site, server, tree } = Hosted::start();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop"), &tree.dir);
    tree.commit().pushed();
    for kind in ["products", "productvariants", "categorytaxonomies", "collections", "files"] {
        until(&format!("all {kind} are ready"), || list(&site, kind).iter().all(is_ready));
    }

    let lamp = tree.dir.join("products/reading-lamp.md");
    let moved = std::fs::read_to_string(&lamp).unwrap().replace("name: lighting", "name: home");
    tree.write("products/reading-lamp.md", &moved).commit().pushed();
    until("the counts moved", || {
        let counts = list(&site, "categorytaxonomies");
        counts.iter().all(|category| category["status"]["resolved"]["productCount"] == json!(1))
    });

    tree.git(&["rm", "-q", "namespace.yaml"]).good();
    let said = tree.commit().pushed();
    assert!(said.contains("namespaces shop is terminating"), "{said}");
    tree.git(&["rm", "-q", "-r", "."]).good();
    tree.commit().pushed();
    until("the namespace is gone", || {
        list(&site, "namespaces").iter().all(|namespace| namespace["metadata"]["name"] != "shop")
    });
    drop(server);
}

fn category(name: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { String::new() } else { format!(", parentRef: {{name: {parent}}}") };
    format!(
        "apiVersion: catalog.gitstore.dev/v1beta1\nkind: CategoryTaxonomy\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{title: T{parent}}}\n"
    )
}

fn variant(name: &str, sku: &str) -> String {
    format!(
        "apiVersion: catalog.gitstore.dev/v1beta1\nkind: ProductVariant\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{sku: {sku}, productRef: {{name: lamp}}}}\n"
    )
}

/// A shop with the product `lamp` and nothing else, on a server of its own.
fn empty_shop() -> Hosted {
    let hosted = Hosted::start();
    let lamp = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata: {name: lamp, namespace: shop}\nspec: {title: Lamp}\n";
    hosted.tree.write("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n").write("lamp.yaml", lamp);
    hosted.tree.commit().pushed();
    hosted
}

fn find(site: &Site, kind: &str, name: &str) -> Value {
    let found = list(site, kind).into_iter().find(|object| object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

/// The reason why it is not ready, of its last generation.
fn trouble(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ready = |condition: &&Value| condition["type"] == "Ready";
    let ready = conditions.iter().find(is_ready).unwrap_or(&Value::Null);
    let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    ready["reason"].as_str().filter(|_| is_current).unwrap_or("unobserved").to_owned()
}

#[test]
fn a_category_moves_with_its_subtree_and_a_cycle_is_told() {
    let Hosted { site, server, tree } = empty_shop();
    for (name, parent) in [("home", ""), ("attic", ""), ("lighting", "home"), ("lamps", "lighting")] {
        tree.write(&format!("{name}.yaml"), &category(name, parent));
    }
    tree.commit().pushed();
    let paths = |expected: &[(&str, &[&str])]| {
        expected
            .iter()
            .all(|(name, path)| find(&site, "categorytaxonomies", name)["status"]["resolved"]["path"] == json!(path))
    };
    until("the tree is there", || paths(&[("lamps", &["home", "lighting", "lamps"])]));

    tree.write("lighting.yaml", &category("lighting", "attic")).commit().pushed();
    until("the subtree has moved", || {
        paths(&[("lighting", &["attic", "lighting"]), ("lamps", &["attic", "lighting", "lamps"]), ("home", &["home"])])
    });
    let children = |name: &str| find(&site, "categorytaxonomies", name)["status"]["resolved"]["childCount"].clone();
    until("the counts have moved", || children("home") == json!(0) && children("attic") == json!(1));

    // Each of the pushes is fine by itself.
    tree.write("attic.yaml", &category("attic", "lamps")).commit().pushed();
    for name in ["attic", "lighting", "lamps"] {
        until(&format!("{name} is in the cycle"), || trouble(&find(&site, "categorytaxonomies", name)) == "Cycle");
    }
    let shown = site.say("get categorytaxonomy attic -n shop -o yaml").good();
    assert!(shown.contains("attic → lamps → lighting → attic"), "{shown}");
    assert_eq!(trouble(&find(&site, "categorytaxonomies", "home")), "Reconciled", "it is in no cycle");

    tree.write("attic.yaml", &category("attic", "home")).commit().pushed();
    until("the cycle is mended", || paths(&[("lamps", &["home", "attic", "lighting", "lamps"])]));
    until("all are ready", || list(&site, "categorytaxonomies").iter().all(is_ready));
    drop(server);
}

#[test]
fn a_sku_has_one_owner_across_pushes_and_restarts() {
    let Hosted { site, server, tree } = empty_shop();
    tree.write("first.yaml", &variant("z-first", "S1")).commit().pushed();
    until("the first has it", || is_ready(&find(&site, "productvariants", "z-first")));
    // The older one keeps it, whatever the names are. Ages are in seconds.
    let created =
        find(&site, "productvariants", "z-first")["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
    until("a second has passed", || chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string() > created);
    tree.write("second.yaml", &variant("a-second", "S1")).commit().pushed();
    until("the second is told", || trouble(&find(&site, "productvariants", "a-second")) == "SkuTaken");
    assert!(is_ready(&find(&site, "productvariants", "z-first")));

    let mut server = server;
    server.signal(rustix::process::Signal::KILL);
    server.wait();
    let server = site.serve();
    tree.write("first.yaml", &variant("z-first", "S2")).commit().pushed();
    until("the second has it now", || is_ready(&find(&site, "productvariants", "a-second")));
    until("so has the first its own", || is_ready(&find(&site, "productvariants", "z-first")));
    tree.git(&["rm", "-q", "second.yaml"]).good();
    tree.write("third.yaml", &variant("third", "S1")).commit().pushed();
    until("the third has it", || is_ready(&find(&site, "productvariants", "third")));
    drop(server);
}
