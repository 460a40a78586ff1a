//! Whatever the order of pushes: the store holds what the tree says.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

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
        widget("w", "v1"),
        "apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n".into(),
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_store_follows_the_tree(pushes in prop::collection::vec(push(), 1..8)) {
        let documents = documents();
        let mut world = World::new();
        let mut tree: BTreeMap<&str, String> = BTreeMap::new();
        for push in pushes {
            let mut next = tree.clone();
            for (path, content) in push {
                match content {
                    Some(content) => {
                        let parts: Vec<_> = content.iter().map(|at| documents[*at].as_str()).collect();
                        next.insert(PATHS[path], parts.join("---\n"));
                    }
                    None => drop(next.remove(PATHS[path])),
                }
            }
            let changed: Vec<_> = next.iter().filter(|(path, text)| tree.get(*path) != Some(text))
                .map(|(path, text)| (*path, text.as_str())).collect();
            let removed: Vec<_> = tree.keys().filter(|path| !next.contains_key(*path)).copied().collect();
            let before = desired(&world);
            let said = world.push(&changed, &removed);
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
            prop_assert!(again.lines().all(|line| line.starts_with("unchanged ")), "{}", again);
        }
    }
}
