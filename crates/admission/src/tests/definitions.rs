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
