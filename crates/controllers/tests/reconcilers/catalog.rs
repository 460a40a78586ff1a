//! The example shop, and what happens to it.

use std::fs;
use std::path::Path;

use tidegate_controllers::hooks::HookOptions;

use crate::world::{World, condition};

/// The files of `examples/shop`, by their paths in it.
fn shop_files() -> Vec<(String, String)> {
    fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found
}

fn push_shop(world: &World) {
    let files = shop_files();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    world.push(&files, &[]).unwrap();
}

const OBJECTS: [(&str, &str); 9] = [
    ("Namespace", "shop"),
    ("CategoryTaxonomy", "home"),
    ("CategoryTaxonomy", "lighting"),
    ("Collection", "winter"),
    ("File", "desk-lamp-photo"),
    ("Product", "desk-lamp"),
    ("Product", "reading-lamp"),
    ("ProductVariant", "desk-lamp-black"),
    ("ProductVariant", "desk-lamp-white"),
];

fn all_ready(world: &World) -> bool {
    OBJECTS.iter().all(|(kind, name)| world.ready(kind, name) == "Ready")
}

fn category(name: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { String::new() } else { format!(", parentRef: {{name: {parent}}}") };
    format!(
        "apiVersion: catalog.gitstore.dev/v1beta1\nkind: CategoryTaxonomy\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{title: T{parent}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shop_becomes_ready_and_stays_quiet() {
    let world = World::new();
    push_shop(&world);
    let running = world.manage(HookOptions::default());
    world.until("every status is ready", all_ready).await;
    let lighting = world.get("CategoryTaxonomy", "lighting").unwrap();
    assert_eq!(lighting["status"]["resolved"]["path"], serde_json::json!(["home", "lighting"]));
    world
        .until("counts are right", |world| {
            let resolved = |kind: &str, name: &str, field: &str| {
                world.get(kind, name).unwrap()["status"]["resolved"][field].clone()
            };
            resolved("CategoryTaxonomy", "lighting", "productCount") == 2
                && resolved("CategoryTaxonomy", "home", "childCount") == 1
                && resolved("Product", "desk-lamp", "variantCount") == 2
                && resolved("Collection", "winter", "productCount") == 1
        })
        .await;
    running.idle(&world).await;
    running.stop().await;

    // A second manager finds nothing to write.
    let writes = world.writes();
    let running = world.manage(HookOptions::default());
    world.apply("more.yaml", &category("more", ""));
    world.until_ready("CategoryTaxonomy", "more", "Ready").await;
    assert_eq!(world.writes(), writes + 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_does_not_wait_for_what_its_changes_do_not_need() {
    let world = World::new();
    push_shop(&world);
    let running = world.manage(HookOptions::default());
    world.until("every status is ready", all_ready).await;
    running.idle(&world).await;
    running.stop().await;

    world.0.gives_records.send_replace(false);
    let file = |name: &str| shop_files().into_iter().find(|(path, _)| path.ends_with(name)).unwrap();
    let (path, product) = file("reading-lamp.md");
    world.apply(&path, &product.replace("name: lighting", "name: home"));
    let variant = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: ProductVariant\nmetadata: {name: desk-lamp-grey, namespace: shop}\nspec: {title: Grey, sku: LAMP-GREY, productRef: {name: desk-lamp}}\n";
    world.apply("grey.yaml", variant);
    let (path, winter) = file("winter.yaml");
    world.apply(&path, &winter.replace("Winter", "Cold"));
    let running = world.manage(HookOptions::default());
    let resolved = |world: &World, kind: &str, name: &str, field: &str| {
        world.get(kind, name).unwrap()["status"]["resolved"][field].clone()
    };
    world
        .until("what the changes need is enough", |world| {
            let products = |name: &str| resolved(world, "CategoryTaxonomy", name, "productCount");
            (products("home"), products("lighting")) == (1.into(), 1.into())
                && world.ready("Product", "reading-lamp") == "Ready"
                && resolved(world, "Product", "desk-lamp", "variantCount") == 3
        })
        .await;
    let waits = ["ProductVariant/desk-lamp-grey", "Collection/winter"].map(|id| id.split_once('/').unwrap());
    for (kind, name) in waits {
        assert_eq!(world.ready(kind, name), "unobserved", "{kind} {name} takes all records");
    }
    world.0.gives_records.send_replace(true);
    for (kind, name) in waits {
        world.until_ready(kind, name, "Ready").await;
    }
    running.idle(&world).await;
    running.stop().await;
}

/// Of one push, the watch of one kind may be ahead of that of another.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_not_called_missing() {
    let world = World::new();
    world.apply("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    let running = world.manage(HookOptions::default());
    world.apply("first.yaml", &category("first", ""));
    world.until_ready("CategoryTaxonomy", "first", "Ready").await;
    world.hold_back("Product", true);
    world.hold_back("CategoryTaxonomy", true);
    push_shop(&world);
    world.until_ready("File", "desk-lamp-photo", "Ready").await;
    // In between, something that really is missing.
    let lonely = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: ProductVariant\nmetadata: {name: lonely, namespace: shop}\nspec: {title: L, sku: L-1, productRef: {name: nobody}}\n";
    world.apply("lonely.yaml", lonely);
    world.until_ready("ProductVariant", "lonely", "ProductNotFound").await;
    assert_eq!(world.ready("ProductVariant", "desk-lamp-black"), "unobserved", "its product exists");
    world.hold_back("Product", false);
    world.hold_back("CategoryTaxonomy", false);
    world.until("every status is ready", all_ready).await;
    let written = |name: &str| {
        let state = world.state();
        let found = state.status_writes.iter().find(|(key, _)| &*key.name == name);
        found.map(|(_, count)| *count)
    };
    for name in ["desk-lamp-black", "desk-lamp-white"] {
        assert_eq!(written(name), Some(1), "{name} was said to be ready, and nothing before");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_moves_and_a_category_is_reparented() {
    let world = World::new();
    push_shop(&world);
    let running = world.manage(HookOptions::default());
    world.until("every status is ready", all_ready).await;
    running.idle(&world).await;
    let product = shop_files().into_iter().find(|(path, _)| path.ends_with("reading-lamp.md")).unwrap();
    let writes = world.state().status_writes.clone();
    world.apply(&product.0, &product.1.replace("name: lighting", "name: home"));
    let count = |world: &World, name: &str| {
        world.get("CategoryTaxonomy", name).unwrap()["status"]["resolved"]["productCount"].clone()
    };
    world.until("the counts moved", |world| count(world, "home") == 1 && count(world, "lighting") == 1).await;
    world.until_ready("Product", "reading-lamp", "Ready").await;
    let after = world.state().status_writes.clone();
    let mut touched: Vec<String> = after
        .iter()
        .filter(|(key, count)| writes.get(key) != Some(count))
        .map(|(key, _)| key.name.to_string())
        .collect();
    touched.sort();
    assert_eq!(touched, ["home", "lighting", "reading-lamp"]);

    world.apply("attic.yaml", &category("attic", ""));
    let home = shop_files().into_iter().find(|(path, _)| path.ends_with("home.md")).unwrap();
    world.apply(&home.0, &home.1.replace("spec:\n", "spec:\n  parentRef: {name: attic}\n"));
    world
        .until("the subtree has new paths", |world| {
            let path = |name: &str| world.get("CategoryTaxonomy", name).unwrap()["status"]["resolved"]["path"].clone();
            path("lighting") == serde_json::json!(["attic", "home", "lighting"])
                && path("home") == serde_json::json!(["attic", "home"])
        })
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_across_pushes_is_reported_and_mended() {
    let world = World::new();
    world.apply("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    let running = world.manage(HookOptions::default());
    for (name, parent) in [("a", ""), ("b", "a"), ("c", "b")] {
        world.apply(&format!("{name}.yaml"), &category(name, parent));
    }
    world.until_ready("CategoryTaxonomy", "c", "Ready").await;
    world.apply("a.yaml", &category("a", "c"));
    for name in ["a", "b", "c"] {
        world.until_ready("CategoryTaxonomy", name, "Cycle").await;
    }
    let a = world.get("CategoryTaxonomy", "a").unwrap();
    assert_eq!(condition(&a, "Stalled")["status"], "True");
    assert!(condition(&a, "Acyclic")["message"].as_str().unwrap().contains("a → c → b → a"));
    world.push(&[], &["b.yaml"]).unwrap();
    world.until_ready("CategoryTaxonomy", "c", "ParentNotFound").await;
    world.until_ready("CategoryTaxonomy", "a", "AncestorNotFound").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_no_manager_ran_is_found() {
    let world = World::new();
    push_shop(&world);
    let running = world.manage(HookOptions::default());
    world.until("every status is ready", all_ready).await;
    running.stop().await;

    // The old category of the product is in no event.
    let product = shop_files().into_iter().find(|(path, _)| path.ends_with("reading-lamp.md")).unwrap();
    world.apply(&product.0, &product.1.replace("name: lighting", "name: home"));
    world.push(&[], &["variants/desk-lamp.yaml"]).unwrap();
    let running = world.manage(HookOptions::default());
    world
        .until("the counts are right", |world| {
            let resolved = |kind: &str, name: &str, field: &str| {
                world.get(kind, name).unwrap()["status"]["resolved"][field].clone()
            };
            resolved("CategoryTaxonomy", "lighting", "productCount") == 1
                && resolved("CategoryTaxonomy", "home", "productCount") == 1
                && resolved("Product", "desk-lamp", "variantCount") == 0
        })
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sku_is_handed_over() {
    let world = World::new();
    push_shop(&world);
    let running = world.manage(HookOptions::default());
    let variant = |name: &str, sku: &str| {
        format!(
            "apiVersion: catalog.gitstore.dev/v1beta1\nkind: ProductVariant\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{sku: {sku}, productRef: {{name: desk-lamp}}}}\n"
        )
    };
    // Of one push: the name decides.
    world.push(&[("x.yaml", &variant("first", "S")), ("y.yaml", &variant("second", "S"))], &[]).unwrap();
    world.until_ready("ProductVariant", "first", "Ready").await;
    world.until_ready("ProductVariant", "second", "SkuTaken").await;
    world.push(&[], &["x.yaml"]).unwrap();
    world.until_ready("ProductVariant", "second", "Ready").await;
    running.stop().await;
}
