//! Whatever the order of pushes: the store holds what the tree says.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::definitions::widgets_of;
use super::*;

/// What a push does to one of few paths: new content, or removal.
type Edit = (usize, Option<Vec<usize>>);

const PATHS: [&str; 4] = ["a.yaml", "b.yaml", "c/d.yaml", "e.yaml"];

fn documents() -> Vec<String> {
    vec![
        file("Product", "p", "{title: One}"),
        file("Product", "p", "{title: Two}"),
        file("File", "f", "{source: {type: http, uri: 'https://example.com/f'}}"),
        file("Product", "q\n  namespace: shop", "{title: Q}"),
        namespace("shop"),
        widgets("Namespaced", &["v1"]),
        widgets_of("{size: {type: integer}, color: {type: string, default: red}}"),
        widget("w", "v1"),
        "apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n".into(),
    ]
}

/// Of one kind: they prune, default and refuse differently.
fn definitions() -> Vec<String> {
    let size = "size: {type: integer}";
    let unserved = widgets("Namespaced", &["v1", "v2"]).replace("name: v2, served: true", "name: v2, served: false");
    vec![
        widgets("Namespaced", &["v1", "v2"]),
        widgets("Namespaced", &["v2", "v1"]),
        unserved,
        widgets_of(&format!("{{{size}, color: {{type: string}}}}")),
        widgets_of(&format!("{{{size}, color: {{type: string, default: red}}}}")),
        widgets_of("{size: {type: integer, minimum: 1}}"),
        widgets_of("{size: {type: integer, maximum: 1}}"),
    ]
}

fn objects() -> Vec<String> {
    let sized = |name: &str, version: &str, size: &str| widget(name, version).replace("size: 1", size);
    vec![
        widget("w", "v1"),
        widget("w", "v2"),
        sized("w", "v1", "size: 0"),
        sized("v", "v1", "size: 2\n  color: blue"),
        sized("u", "v2", "color: 7"),
        file("Product", "p", "{title: One}"),
    ]
}

fn push() -> impl Strategy<Value = Vec<Edit>> {
    let content = prop::option::of(prop::collection::vec(0..documents().len(), 0..3));
    prop::collection::vec((0..PATHS.len(), content), 1..4)
}

/// The desired part of every object, with where it comes from.
fn desired(world: &World) -> BTreeMap<ObjectKey, Value> {
    let part = |object: &Object| {
        let path = Provenance::of(object).map(|provenance| provenance.path.to_string());
        json!([object.api_version(), object.spec(), path])
    };
    world.objects.iter().map(|(key, object)| (key.clone(), part(object))).collect()
}

/// The tree after some edits of it.
fn edited(
    tree: &BTreeMap<&'static str, String>,
    documents: &[String],
    push: Vec<Edit>,
) -> BTreeMap<&'static str, String> {
    let mut next = tree.clone();
    for (path, content) in push {
        match content {
            Some(content) => {
                let parts: Vec<_> = content.iter().map(|at| documents[at % documents.len()].as_str()).collect();
                next.insert(PATHS[path], parts.join("---\n"));
            }
            None => drop(next.remove(PATHS[path])),
        }
    }
    next
}

/// Pushes what differs between two trees.
fn push_difference(world: &mut World, old: &BTreeMap<&str, String>, new: &BTreeMap<&str, String>) -> String {
    let changed: Vec<_> = new
        .iter()
        .filter(|(path, text)| old.get(*path) != Some(text))
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let removed: Vec<_> = old.keys().filter(|path| !new.contains_key(*path)).copied().collect();
    world.push(&changed, &removed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_store_follows_the_tree(pushes in prop::collection::vec(push(), 1..8)) {
        let documents = documents();
        let mut world = World::new();
        let mut tree = BTreeMap::new();
        for push in pushes {
            let next = edited(&tree, &documents, push);
            let before = desired(&world);
            let said = push_difference(&mut world, &tree, &next);
            if said.starts_with('!') {
                prop_assert_eq!(desired(&world), before, "a refused push changes nothing");
                continue;
            }
            tree = next;
            world.finish_namespaces();

            let mut fresh = World::new();
            let whole: Vec<_> = tree.iter().map(|(path, text)| (*path, text.as_str())).collect();
            // A tree may leave out a namespace that is on its way out.
            let shop = namespace("shop");
            let terminating: &[_] = if world.is_terminating("shop") { &[("ns.yaml", shop.as_str())] } else { &[] };
            let said = fresh.push(&[&whole, terminating].concat(), &[]);
            prop_assert!(!said.starts_with('!'), "what was admitted in steps is admitted at once: {}", said);
            let is_other = |key: &ObjectKey| terminating.is_empty() || !crate::places::is_namespace(key);
            let others = |world: &World| desired(world).into_iter().filter(|(key, _)| is_other(key)).collect::<Vec<_>>();
            prop_assert_eq!(others(&world), others(&fresh));
            let again = world.push(&whole, &[]);
            prop_assert!(is_unchanged(&again), "{}", again);
        }
    }

    /// One repository has the definitions, the other the objects.
    #[test]
    fn the_store_follows_all_trees(pushes in prop::collection::vec((any::<bool>(), push()), 1..10)) {
        let all = [definitions(), objects()];
        let rules = [Rules::unrestricted("default", "control"), Rules::unrestricted("default", "goods")];
        let mut world = World::new();
        let mut trees = [BTreeMap::new(), BTreeMap::new()];
        for (which, push) in pushes {
            let at = usize::from(which);
            let next = edited(&trees[at], &all[at], push);
            let before = desired(&world);
            world.rules = rules[at].clone();
            if push_difference(&mut world, &trees[at], &next).starts_with('!') {
                prop_assert_eq!(desired(&world), before, "a refused push changes nothing");
                continue;
            }
            trees[at] = next;

            let mut fresh = World::new();
            for (rules, tree) in rules.iter().zip(&trees) {
                fresh.rules = rules.clone();
                let said = push_difference(&mut fresh, &BTreeMap::new(), tree);
                prop_assert!(!said.starts_with('!'), "what was admitted in steps is admitted at once: {}", said);
                world.rules = rules.clone();
                let again = push_difference(&mut world, &BTreeMap::new(), tree);
                prop_assert!(is_unchanged(&again), "{}", again);
            }
            prop_assert_eq!(desired(&world), desired(&fresh));
        }
    }
}

/// Nothing but warnings.
fn is_unchanged(said: &str) -> bool {
    said.lines().all(|line| line.starts_with("unchanged ") || line.starts_with("? "))
}
