//! The example shop, pushed to a real server that reconciles it.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::git::Hosted;
use super::process::{PATIENCE, Site};

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

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what} did not come true");
    }
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
