//! Pushes, one after the other, with what each says.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

type Push<'p> = (&'p [(&'p str, &'p str)], &'p [&'p str]);

pub fn check(world: &mut World, (files, removed): Push<'_>, expected: Expect) {
    expected.assert_eq(&world.push(files, removed));
}

pub fn check_new(files: &[(&str, &str)], expected: Expect) {
    check(&mut World::new(), (files, &[]), expected);
}

#[test]
fn objects_come_change_move_and_go() {
    let mut world = World::new();
    let file_a = file("Product", "a", "{title: A}");
    let changed = file("Product", "a", "{title: B}");
    check(
        &mut world,
        (&[("a.yaml", &file_a)], &[]),
        expect![[r#"
        create products.catalog.gitstore.dev default/a generation 1 from a.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &format!("# why\n{file_a}"))], &[]),
        expect![[r#"
        unchanged products.catalog.gitstore.dev default/a
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &changed)], &[]),
        expect![[r#"
        update products.catalog.gitstore.dev default/a generation 2 from a.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[("b/a.yaml", &changed)], &["a.yaml"]),
        expect![[r#"
        update products.catalog.gitstore.dev default/a generation 2 from b/a.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[("b/a.yaml", &file("Product", "z", "{title: Z}"))], &[]),
        expect![[r#"
        create products.catalog.gitstore.dev default/z generation 1 from b/a.yaml:1
        delete products.catalog.gitstore.dev default/a
    "#]],
    );
    check(
        &mut world,
        (&[], &["b/a.yaml", "never-was.yaml"]),
        expect![[r#"
        delete products.catalog.gitstore.dev default/z
    "#]],
    );
}

#[test]
fn a_markdown_body_is_part_of_the_spec() {
    let mut world = World::new();
    let front =
        "---\napiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata: {name: a}\nspec: {title: A}\n---\n";
    check(
        &mut world,
        (&[("a.md", &format!("{front}one\n"))], &[]),
        expect![[r#"
        create products.catalog.gitstore.dev default/a generation 1 from a.md:2
    "#]],
    );
    check(
        &mut world,
        (&[("a.md", &format!("{front}two\n"))], &[]),
        expect![[r#"
        update products.catalog.gitstore.dev default/a generation 2 from a.md:2
    "#]],
    );
    let stored = world.objects.values().find(|object| object.name() == "a").unwrap();
    assert_eq!(stored.spec().unwrap()["body"], "two");
    let twice = front.replace("title: A", "body: B") + "two\n";
    check(
        &mut world,
        (&[("a.md", &twice)], &[]),
        expect![[r#"
        ! a.md:5: spec.body: is in the front matter and below it: keep one of the two
    "#]],
    );
    let none = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\n\ntext\n";
    check(
        &mut world,
        (&[("n.md", none)], &[]),
        expect![[r#"
        ! n.md:7: spec.body: Namespace has no body: remove the text below the front matter
    "#]],
    );
}

#[test]
fn what_the_system_writes_is_refused() {
    let text = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata:\n  name: a\n  creationTimestamp: null\n  uid: x\n  finalizers: [f]\n  annotations:\n    tidegate.dev/source-path: p\nspec: {title: A}\nstatus:\n  ready: true\n";
    check_new(
        &[("a.yaml", text)],
        expect![[r#"
        ! a.yaml:6: metadata.uid: is set by the system, never by a file: remove it
        ! a.yaml:7: metadata.finalizers: is set by the system, never by a file: remove it
        ! a.yaml:9: metadata.annotations[tidegate.dev/source-path]: says where the object comes from and is set by the system: remove it
        ! a.yaml:11: status: is written by controllers, never by a file: remove it
    "#]],
    );
}

#[test]
fn unknown_kinds_and_broken_files_are_named_all_at_once() {
    check_new(
        &[
            ("a.yaml", &file("Prodct", "a", "{}")),
            ("b.yaml", "a: [\n"),
            ("c.json", "{}"),
            ("README.md", "# hi"),
            ("x.txt", "?"),
        ],
        expect![[r#"
            ! a.yaml:2: kind: there is no kind Prodct in catalog.gitstore.dev/v1beta1: did you mean Product of catalog.gitstore.dev/v1beta1?
            ! b.yaml:1: unclosed bracket '['
            ! c.json:1: apiVersion: is required, a string: every document under this path defines an object
        "#]],
    );
}

#[test]
fn a_schema_is_enforced_with_the_line() {
    let long = "x".repeat(201);
    check_new(
        &[("a.yaml", &file("Product", "a", &format!("\n  title: {long}")))],
        expect![[r#"
            ! a.yaml:6: spec.title: Too long: may not be longer than 200
        "#]],
    );
}

#[test]
fn what_no_schema_knows_is_dropped_with_a_warning() {
    let text = file(
        "Product",
        "a\n  label: {x: y}",
        "\n  titel: A\n  title: A\n  nothing: null\n  options:\n  - name: color\n    valeus: [black]\n    x/y: 1",
    );
    check_new(
        &[("a.yaml", &text)],
        expect![[r#"
            ? a.yaml:5: metadata.label: no schema knows this field, so it is dropped: check its name and its place
            ? a.yaml:7: spec.titel: no schema knows this field, so it is dropped: check its name and its place
            ? a.yaml:12: spec.options[0].valeus: no schema knows this field, so it is dropped: check its name and its place
            ? a.yaml:13: spec.options[0][x/y]: no schema knows this field, so it is dropped: check its name and its place
            create products.catalog.gitstore.dev default/a generation 1 from a.yaml:1
        "#]],
    );
}

#[test]
fn a_deprecated_version_is_admitted_with_a_warning() {
    let mut world = World::new();
    let definition = widgets("Namespaced", &["v1", "v2"]).replace("{name: v2,", "{name: v2, deprecated: true,");
    world.push(&[("z.yaml", &definition)], &[]);
    check(
        &mut world,
        (&[("a.yaml", &widget("a", "v1")), ("b.yaml", &widget("b", "v2"))], &[]),
        expect![[r#"
        ? b.yaml:1: apiVersion: example.com/v2 Widget is deprecated
        create widgets.example.com default/a generation 1 from a.yaml:1
        create widgets.example.com default/b generation 1 from b.yaml:1
    "#]],
    );
}

#[test]
fn one_object_has_one_place() {
    let a = file("Product", "a", "{title: A}");
    check_new(
        &[("a.yaml", &format!("{a}---\n{a}")), ("b.yaml", &a)],
        expect![[r#"
        ! a.yaml:10: metadata.name: products.catalog.gitstore.dev default/a is already defined at a.yaml:1: remove one of the two
        ! b.yaml:4: metadata.name: products.catalog.gitstore.dev default/a is already defined at a.yaml:1: remove one of the two
    "#]],
    );
    let mut world = World::new();
    world.push(&[("a.yaml", &a)], &[]);
    check(
        &mut world,
        (&[("b.yaml", &a)], &[]),
        expect![[r#"
        ! b.yaml:4: metadata.name: products.catalog.gitstore.dev default/a is already defined at a.yaml: remove one of the two
    "#]],
    );
    world.rules = Rules::unrestricted("default", "other");
    check(
        &mut world,
        (&[("a.yaml", &a)], &[]),
        expect![[r#"
        ! a.yaml:4: metadata.name: products.catalog.gitstore.dev default/a is already defined by repository default/all at a.yaml: an object belongs to one
    "#]],
    );
    check(&mut world, (&[], &["a.yaml"]), expect![""]);
}

#[test]
fn finalizers_hold_an_object_and_its_kind() {
    let mut world = World::new();
    world.push(&[("z.yaml", &widgets("Namespaced", &["v1"])), ("a.yaml", &widget("a", "v1"))], &[]);
    world.edit("a", |object| drop(object.metadata_mut().insert("finalizers".into(), json!(["example.com/hold"]))));
    check(
        &mut world,
        (&[], &["a.yaml", "z.yaml"]),
        expect![[r#"
        ! z.yaml: removing customresourcedefinitions.apiextensions.k8s.io widgets.example.com would strand 1 object: remove them first, or in the same change; those with finalizers must be gone before
    "#]],
    );
    check(
        &mut world,
        (&[], &["a.yaml"]),
        expect![[r#"
        delete widgets.example.com default/a
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &widget("a", "v1"))], &[]),
        expect![[r#"
        ! a.yaml:4: metadata.name: widgets.example.com default/a is being deleted and waits for example.com/hold: push again when it is gone
    "#]],
    );
}

#[test]
fn a_repository_keeps_to_its_rules() {
    let mut world = World::new();
    world.rules.kinds = Allow::Only([("catalog.gitstore.dev".to_string(), "Product".to_string())].into());
    world.rules.namespaces = Allow::Only(BTreeSet::from(["default".to_string()]));
    world.rules.allow_cluster_scoped = false;
    let other = file("Product", "b\n  namespace: other", "{title: B}");
    check(
        &mut world,
        (
            &[
                ("a.yaml", &file("File", "a", "{}")),
                ("b.yaml", &other),
                ("c.yaml", &namespace("c")),
                ("d.yaml", &file("Product", "d", "{title: D}")),
            ],
            &[],
        ),
        expect![[r#"
            ! a.yaml:2: kind: repository default/all may not define File: add it to its spec.kinds
            ! b.yaml:5: metadata.namespace: repository default/all may not define objects in other: add it to its spec.namespaces
            ! c.yaml:2: kind: repository default/all may not define Namespace: add it to its spec.kinds
            ! c.yaml:2: kind: repository default/all may not define cluster-scoped objects: set its spec.allowClusterScoped
        "#]],
    );
}

#[test]
fn status_survives_a_push() {
    let mut world = World::new();
    world.push(&[("a.yaml", &file("Product", "a", "{title: A}"))], &[]);
    world.edit("a", |object| drop(object.root_mut().insert("status".into(), json!({"observedGeneration": 1}))));
    world.push(&[("a.yaml", &file("Product", "a", "{title: B}"))], &[]);
    let stored = world.objects.values().find(|object| object.name() == "a").unwrap();
    assert_eq!(stored.status(), Some(&json!({"observedGeneration": 1})));
}

#[test]
fn an_object_has_a_limit() {
    let text = file("Product", "a", &format!("{{title: A, body: {}}}", "x".repeat(DESIRED_BYTES_MAX)));
    let said = World::new().push(&[("a.yaml", &text)], &[]);
    assert!(said.starts_with("! a.yaml:1: 2097") && said.contains("more than the 2097152 allowed"), "{said}");
}

#[test]
fn many_problems_are_cut_off() {
    let names: Vec<_> = (0..300).map(|n| (format!("{n:03}.yaml"), file("Nothing", "a", "{}"))).collect();
    let files: Vec<_> = names.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let said = World::new().push(&files, &[]);
    assert_eq!(said.lines().count(), DIAGNOSTICS_MAX + 1);
    assert!(said.ends_with("! 049.yaml: and 250 more problems from here on: mend these first\n"), "{said}");
}

#[test]
fn a_state_that_finds_paths_by_reading_files_has_help() {
    let text = format!("{}---\n{}---\n{}", file("Product", "a", "{}"), namespace("b"), widget("w", "v1"));
    let keys = defined_keys(&KindSet::builtin(), &Rules::unrestricted("shop", "r"), "a.yaml", text.as_bytes());
    let shown: Vec<_> = keys.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["products.catalog.gitstore.dev shop/a", "namespaces b"]);
}

/// A repository of `default`, with these rules.
fn repository(rules: &str) -> String {
    format!(
        "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata:\n  name: goods\n  namespace: default\nspec:\n  branch: main\n{rules}"
    )
}

#[test]
fn a_repository_keeps_the_right_to_what_it_has_in_force() {
    let mut world = World::new();
    let wide = repository("  namespaces: ['*']\n  allowClusterScoped: true\n");
    world.push(&[("goods.yaml", &wide)], &[]);
    let control = std::mem::replace(&mut world.rules, Rules::unrestricted("default", "goods"));
    let other = repository("").replace("name: goods", "name: deep");
    let products = file("Product", "a\n  namespace: shop", "{title: A}")
        + "---\n"
        + &file("Product", "b\n  namespace: shop", "{title: B}");
    world.push(&[("ns.yaml", &namespace("shop")), ("p.yaml", &products), ("deep.yaml", &other)], &[]);
    let own = std::mem::replace(&mut world.rules, control.clone());
    check(
        &mut world,
        (&[("goods.yaml", &repository("  kinds: [{kind: Namespace}]\n"))], &[]),
        expect![[r#"
        ! goods.yaml:6: spec.allowClusterScoped: 1 object of repository default/goods would be outside of what it may define, first namespaces shop at ns.yaml:1: change that there first, or keep this as it was
        ! goods.yaml:6: spec.namespaces: 2 objects of repository default/goods would be outside of what it may define, first products.catalog.gitstore.dev shop/a at p.yaml:1: change that there first, or keep this as it was
        ! goods.yaml:8: spec.kinds: 3 objects of repository default/goods would be outside of what it may define, first repositories.tidegate.dev default/deep at deep.yaml:1: change that there first, or keep this as it was
    "#]],
    );
    check(
        &mut world,
        (&[("goods.yaml", &repository("  namespaces: [default, shop]\n  allowClusterScoped: true\n"))], &[]),
        expect![[r#"
            update repositories.tidegate.dev default/goods generation 2 from goods.yaml:1
        "#]],
    );
    // When they are gone, so may be the right to them; what it gave another
    // repository it must have itself.
    world.rules = own.clone();
    world.push(&[], &["ns.yaml", "p.yaml"]);
    world.rules = control.clone();
    check(
        &mut world,
        (&[("goods.yaml", &repository("  kinds: [{kind: Repository, group: tidegate.dev}]\n"))], &[]),
        expect![[r#"
            ! goods.yaml:8: spec.kinds: 1 object of repository default/goods would be outside of what it may define, first repositories.tidegate.dev default/deep at deep.yaml:1: change that there first, or keep this as it was
        "#]],
    );
    world.rules = own;
    world.push(&[], &["deep.yaml"]);
    world.rules = control;
    check(
        &mut world,
        (&[("goods.yaml", &repository("  kinds: [{kind: Product}]\n"))], &[]),
        expect![[r#"
        update repositories.tidegate.dev default/goods generation 3 from goods.yaml:1
    "#]],
    );
}

/// It narrows itself, and defines what is outside with the same push.
#[test]
fn a_repository_that_defines_itself_is_no_exception() {
    let mut world = World::new();
    world.push(&[("ns.yaml", &namespace("shop"))], &[]);
    world.rules = Rules::unrestricted("default", "goods");
    world.push(&[("goods.yaml", &repository("  namespaces: ['*']\n"))], &[]);
    let product = file("Product", "a\n  namespace: shop", "{title: A}");
    check(
        &mut world,
        (&[("goods.yaml", &repository("  namespaces: [default]\n")), ("p.yaml", &product)], &[]),
        expect![[r#"
            ! goods.yaml:8: spec.namespaces: 1 object of repository default/goods would be outside of what it may define, first products.catalog.gitstore.dev shop/a at p.yaml:1: change that there first, or keep this as it was
        "#]],
    );
}
