//! Namespaces: they come first, hold what is in them, and go when it is gone.

use expect_test::expect;

use super::cases::check;
use super::*;

#[test]
fn namespaces_exist_or_come_along() {
    let mut world = World::new();
    let a = file("Product", "a\n  namespace: shop", "{title: A}");
    check(
        &mut world,
        (&[("a.yaml", &a)], &[]),
        expect![[r#"
        ! a.yaml:5: metadata.namespace: namespace shop does not exist: define it in the same change, or use another
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &a), ("ns.yaml", &namespace("shop"))], &[]),
        expect![[r#"
        create namespaces shop generation 1 from ns.yaml:1
        create products.catalog.gitstore.dev shop/a generation 1 from a.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[], &["ns.yaml", "a.yaml"]),
        expect![[r#"
        delete namespaces shop
        delete products.catalog.gitstore.dev shop/a
    "#]],
    );
}

#[test]
fn a_namespace_that_is_not_empty_takes_nothing_new_and_goes_later() {
    let mut world = World::new();
    let a = file("Product", "a\n  namespace: shop", "{title: A}");
    world.push(&[("a.yaml", &a), ("ns.yaml", &namespace("shop"))], &[]);
    let b = file("Product", "b\n  namespace: shop", "{title: B}");
    check(
        &mut world,
        (&[("b.yaml", &b)], &["ns.yaml"]),
        expect![[r#"
        ! b.yaml:5: metadata.namespace: namespace shop is removed by the same change and takes nothing new: use another
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &a.replace("title: A", "title: B"))], &["ns.yaml"]),
        expect![[r#"
        ? ns.yaml: namespaces shop is terminating: 1 object is left in it; remove their files, too, and it goes
        update products.catalog.gitstore.dev shop/a generation 2 from a.yaml:1
        drain namespaces shop
    "#]],
    );
    check(
        &mut world,
        (&[("b.yaml", &b)], &[]),
        expect![[r#"
        ! b.yaml:5: metadata.namespace: namespace shop is being deleted and takes nothing new: use another
    "#]],
    );
    check(
        &mut world,
        (&[("a.yaml", &a)], &[]),
        expect![[r#"
        update products.catalog.gitstore.dev shop/a generation 3 from a.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[("ns.yaml", &namespace("shop"))], &[]),
        expect![[r#"
        ! ns.yaml:4: metadata.name: namespaces shop is being deleted and waits for tidegate.dev/contents: remove the objects in it, and push again when it is gone
    "#]],
    );
    check(
        &mut world,
        (&[], &["a.yaml"]),
        expect![[r#"
        delete products.catalog.gitstore.dev shop/a
    "#]],
    );
    world.finish_namespaces();
    check(
        &mut world,
        (&[("ns.yaml", &namespace("shop")), ("b.yaml", &b)], &[]),
        expect![[r#"
        create namespaces shop generation 1 from ns.yaml:1
        create products.catalog.gitstore.dev shop/b generation 1 from b.yaml:1
    "#]],
    );
}

#[test]
fn the_first_namespaces_may_be_adopted_but_not_removed() {
    let mut world = World::new();
    check(
        &mut world,
        (&[("ns.yaml", &namespace("default"))], &[]),
        expect![[r#"
        update namespaces default generation 1 from ns.yaml:1
    "#]],
    );
    check(
        &mut world,
        (&[], &["ns.yaml"]),
        expect![[r#"
        ! ns.yaml: namespaces default cannot be deleted: the server needs it; keep the file
    "#]],
    );
}
