//! Kinds that a push defines, changes and removes, with their objects.

use expect_test::expect;

use super::cases::{check, check_new};
use super::*;

#[test]
fn a_definition_and_its_objects_arrive_together() {
    let mut world = World::new();
    check(
        &mut world,
        (&[("a.yaml", &widget("a", "v1")), ("z.yaml", &widgets("Namespaced", &["v1"]))], &[]),
        expect![[r#"
        create customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 1 from z.yaml:1
        create widgets.example.com default/a generation 1 from a.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[], &["z.yaml"]),
        expect![[r#"
        ! z.yaml: removing customresourcedefinitions.apiextensions.k8s.io widgets.example.com would strand 1 object: remove them first, or in the same change; those with finalizers must be gone before
    "#]],
    );
    check(
        &mut world,
        (&[("z.yaml", &widgets("Cluster", &["v1"]))], &[]),
        expect![[r#"
        ! z.yaml:7: spec.scope: Invalid value: field is immutable: delete the objects and the definition first; objects are stored as Namespaced (1 object is stored)
    "#]],
    );
    check(
        &mut world,
        (&[], &["a.yaml", "z.yaml"]),
        expect![[r#"
        delete widgets.example.com default/a
        delete customresourcedefinitions.apiextensions.k8s.io widgets.example.com
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &widget("a", "v1"))], &[]),
        expect![[r#"
        ! a.yaml:2: kind: there is no kind Widget in example.com/v1: push its CustomResourceDefinition first, or in the same change
    "#]],
    );
}

#[test]
fn a_definition_without_objects_may_change_freely() {
    let mut world = World::new();
    world.push(&[("z.yaml", &widgets("Namespaced", &["v1"]))], &[]);
    check(
        &mut world,
        (&[("z.yaml", &widgets("Cluster", &["v2"])), ("a.yaml", &widget("a", "v2"))], &[]),
        expect![[r#"
        update customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 2 from z.yaml:1
        create widgets.example.com a generation 1 from a.yaml:1
    "#]],
    );
}

#[test]
fn a_refused_definition_is_the_only_thing_said() {
    let broken = widgets("Sideways", &["v1"]);
    check_new(
        &[("a.yaml", &widget("a", "v1")), ("z.yaml", &broken)],
        expect![[r#"
        ! z.yaml:7: spec.scope: Unsupported value: "Sideways": supported values: "Cluster", "Namespaced"
    "#]],
    );
    let mut world = World::new();
    world.push(&[("a.yaml", &widget("a", "v1")), ("z.yaml", &widgets("Namespaced", &["v1"]))], &[]);
    check(
        &mut world,
        (&[("z.yaml", &broken)], &[]),
        expect![[r#"
        ! z.yaml:7: spec.scope: Unsupported value: "Sideways": supported values: "Cluster", "Namespaced"
    "#]],
    );
    check(
        &mut world,
        (&[("z.yaml", "not: [yaml")], &[]),
        expect![[r#"
            ! z.yaml:1: unclosed bracket '['
        "#]],
    );
}

#[test]
fn an_object_is_stored_in_one_version() {
    let mut world = World::new();
    world.push(&[("z.yaml", &widgets("Namespaced", &["v1", "v2"])), ("a.yaml", &widget("a", "v2"))], &[]);
    assert_eq!(world.objects.values().find(|object| object.name() == "a").unwrap().api_version(), "example.com/v1");
    check(
        &mut world,
        (&[("a.yaml", &widget("a", "v1"))], &[]),
        expect![[r#"
        unchanged widgets.example.com default/a
    "#]],
    );
}

/// A word that is written with an escape is the same word.
#[test]
fn a_definition_is_found_however_it_is_written() {
    let definition = widgets("Namespaced", &["v1"]);
    let escaped = definition.replace("CustomResourceDefinition", r#""Custom\x52esourceDefinition""#);
    assert_ne!(escaped, definition);
    check_new(
        &[("a.yaml", &widget("a", "v1")), ("z.yaml", &escaped)],
        expect![[r#"
        create customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 1 from z.yaml:1
        create widgets.example.com default/a generation 1 from a.yaml:1
    "#]],
    );
}

/// `Widget`s whose spec has these properties.
pub fn widgets_of(properties: &str) -> String {
    widgets("Namespaced", &["v1"]).replace("{size: {type: integer}}", properties)
}

#[test]
fn a_changed_definition_is_a_change_of_its_objects() {
    let mut world = World::new();
    let both = widget("a", "v1") + "  color: red\n---\n" + &file("Product", "p", "{title: P}");
    world.push(&[("z.yaml", &widgets_of("{size: {type: integer}, color: {type: string}}")), ("a.yaml", &both)], &[]);
    let spec = |world: &World| world.objects.values().find(|object| object.name() == "a").unwrap().spec().cloned();
    assert_eq!(spec(&world), Some(json!({"size": 1, "color": "red"})));
    check(
        &mut world,
        (&[("z.yaml", &widgets_of("{size: {type: integer}, depth: {type: integer, default: 7}}"))], &[]),
        expect![[r#"
            ? a.yaml:7: spec.color: no schema knows this field, so it is dropped: check its name and its place
            update customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 2 from z.yaml:1
            update widgets.example.com default/a generation 2 from a.yaml:1
        "#]],
    );
    assert_eq!(spec(&world), Some(json!({"size": 1, "depth": 7})));
    // What was dropped is in the file, and comes back.
    world.push(&[("z.yaml", &widgets_of("{size: {type: integer}, color: {type: string}}"))], &[]);
    assert_eq!(spec(&world), Some(json!({"size": 1, "color": "red"})));
    check(
        &mut world,
        (&[("z.yaml", &widgets_of("{size: {type: integer, minimum: 2}}"))], &[]),
        expect![[r#"
            ! a.yaml:6: spec.size: Invalid value: 1: should be greater than or equal to 2 (its definition changed in this push: z.yaml:1)
        "#]],
    );
    check(
        &mut world,
        (&[("z.yaml", &widgets("Namespaced", &["v1"]).replace("served: true", "served: false"))], &[]),
        expect![[r#"
            ! a.yaml:2: kind: there is no kind Widget in example.com/v1: push its CustomResourceDefinition first, or in the same change (its definition changed in this push: z.yaml:1)
        "#]],
    );
}

#[test]
fn a_changed_definition_concerns_the_objects_of_all_repositories() {
    let mut world = World::new();
    world.push(&[("z.yaml", &widgets_of("{size: {type: integer}}"))], &[]);
    let control = std::mem::replace(&mut world.rules, Rules::unrestricted("default", "goods"));
    world.push(&[("a.yaml", &widget("a", "v1")), ("b.yaml", &widget("b", "v1"))], &[]);
    world.rules = control;
    check(
        &mut world,
        (&[("z.yaml", &widgets_of("{size: {type: integer, minimum: 2}}"))], &[]),
        expect![[r#"
        ! z.yaml:1: widgets.example.com default/a of repository default/goods would no longer fit, at a.yaml:6: spec.size: change it there first
        ! z.yaml:1: widgets.example.com default/b of repository default/goods would no longer fit, at b.yaml:6: spec.size: change it there first
    "#]],
    );
    check(
        &mut world,
        (&[("z.yaml", &widgets_of("{size: {type: integer}, depth: {type: integer, default: 7}}"))], &[]),
        expect![[r#"
            update customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 2 from z.yaml:1
            update widgets.example.com default/a generation 2 from a.yaml:1
            update widgets.example.com default/b generation 2 from b.yaml:1
        "#]],
    );
    world.edit("a", |object| {
        drop(object.metadata_mut().insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z")))
    });
    check(
        &mut world,
        (&[("z.yaml", &widgets_of("{size: {type: integer, maximum: 1}}"))], &[]),
        expect![[r#"
        update customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 3 from z.yaml:1
        update widgets.example.com default/b generation 3 from b.yaml:1
    "#]],
    );
    let a = world.objects.values().find(|object| object.name() == "b").unwrap();
    assert_eq!(Provenance::of(a), Some(Provenance { repository: "default/goods", path: "b.yaml" }));
}

/// A definition that moves, or changes its labels alone, is the same.
#[test]
fn a_definition_that_stays_the_same_concerns_nothing() {
    let mut world = World::new();
    let definition = widgets("Namespaced", &["v1"]);
    world.push(&[("z.yaml", &definition), ("a.yaml", &widget("a", "v1"))], &[]);
    let labelled = definition.replace("metadata:\n", "metadata:\n  labels: {a: b}\n");
    check(
        &mut world,
        (&[("y.yaml", &labelled)], &["z.yaml"]),
        expect![[r#"
        update customresourcedefinitions.apiextensions.k8s.io widgets.example.com generation 1 from y.yaml:1
    "#]],
    );
}
