//! What a part of the catalogue answers is what the whole would.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidegate_model::ObjectKey;
use tidegate_runtime::{Change, Durable, Touched};

use super::super::CatalogKind::{CategoryTaxonomy, Collection, File, Product, ProductVariant};
use super::super::part::{Part, Summary};
use super::properties::{op, step};
use super::records::{Saved, state};
use super::*;

/// A part, the records that it reads, and whom it has named.
struct Reader {
    part: Part,
    saved: Saved,
    named: BTreeSet<ObjectKey>,
}

impl Reader {
    fn new(shop: &Shop) -> Self {
        let mut saved = Saved::default();
        for id in shop.objects.keys() {
            saved.follow(shop, id);
        }
        Self::of(saved)
    }

    fn of(saved: Saved) -> Self {
        let summary = Summary::from_json(&saved.index.summary()).unwrap();
        Self { part: Part::new(summary), saved, named: BTreeSet::new() }
    }

    fn follow(&mut self, shop: &Shop, id: &(CatalogKind, String)) {
        let (key, item) = state(shop, id);
        let changes = [item.as_ref().map_or(Change::Gone(&key), Change::Put)];
        let mut needs = self.part.needs(id.0, &changes);
        while !needs.is_empty() {
            for key in &needs {
                self.part.load(key, self.saved.rows.get(key).map(|record| &**record)).unwrap();
            }
            needs = self.part.needs(id.0, &[]);
        }
        let mut touched = Touched::default();
        self.part.apply(id.0, &changes, &mut touched);
        self.named.extend(touched.keys().iter().cloned());
    }

    fn check(&self, shop: &Shop) {
        for ((kind, name), object) in &shop.objects {
            let key = kind.of_runtime().key(Some(SHOP), name);
            if !self.part.answers(&key) {
                continue;
            }
            let report = shop.report(*kind, name);
            let is_due = report.digest() != crate::report::digest(object.status(), kind.conditions());
            let answer = self.part.due(&key).map(|due| due.report);
            assert_eq!(answer.as_ref(), is_due.then_some(&report), "{key}");
            assert!(!is_due || self.named.contains(&key), "{key} was not named");
        }
    }

    fn answers(&self, kind: CatalogKind, name: &str) -> bool {
        let key = kind.of_runtime().key(Some(SHOP), name);
        self.part.answers(&key) && self.named.contains(&key)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_part_answers_as_the_whole(
        before in prop::collection::vec(op(), 0..40),
        after in prop::collection::vec(op(), 1..15),
    ) {
        let (mut shop, mut saved) = (Shop::default(), Saved::default());
        for op in &before {
            if let Some(id) = step(&mut shop, op) {
                saved.follow(&shop, &id);
            }
        }
        let mut reader = Reader::of(saved);
        for op in &after {
            if let Some(id) = step(&mut shop, op) {
                reader.follow(&shop, &id);
            }
            reader.check(&shop);
        }
    }
}

/// Two categories of two products each; `a1` has two variants.
fn shop() -> Shop {
    let mut shop = Shop::default();
    for name in ["a", "b"] {
        shop.put(CategoryTaxonomy, name, json!({}));
        for at in 1..3 {
            shop.put(Product, &format!("{name}{at}"), json!({"categoryRef": {"name": name}}));
        }
    }
    shop.put(ProductVariant, "red", json!({"productRef": {"name": "a1"}, "sku": "s1"}));
    shop.put(ProductVariant, "green", json!({"productRef": {"name": "a1"}, "sku": "s2"}));
    shop.put(Collection, "all", json!({"selector": {"matchLabels": {"x": "y"}}}));
    for (kind, name) in shop.objects.keys().cloned().collect::<Vec<_>>() {
        shop.reconcile(kind, &name);
    }
    shop
}

#[test]
fn ordinary_changes_are_answered_from_a_part() {
    type Changed = (CatalogKind, &'static str, Value);
    type Ids = &'static [(CatalogKind, &'static str)];
    let cases: Vec<(&str, Changed, Ids, Ids)> = vec![
        (
            "a product that moves",
            (Product, "a1", json!({"categoryRef": {"name": "b"}})),
            &[(Product, "a1"), (CategoryTaxonomy, "a"), (CategoryTaxonomy, "b")],
            &[(Product, "a2"), (ProductVariant, "red")],
        ),
        (
            "a product that comes",
            (Product, "a3", json!({"categoryRef": {"name": "a"}})),
            &[(Product, "a3"), (CategoryTaxonomy, "a")],
            &[(CategoryTaxonomy, "b")],
        ),
        (
            "a variant with another price",
            (
                ProductVariant,
                "red",
                json!({"productRef": {"name": "a1"}, "sku": "s1", "pricing": {"priceSet": {"prices": []}}}),
            ),
            &[(ProductVariant, "red")],
            &[(Product, "a1"), (ProductVariant, "green")],
        ),
        (
            "a variant with another SKU, which somebody else may have",
            (ProductVariant, "red", json!({"productRef": {"name": "a2"}, "sku": "s2"})),
            &[(Product, "a1"), (Product, "a2")],
            &[(ProductVariant, "red")],
        ),
        (
            "a category below another",
            (CategoryTaxonomy, "b", json!({"parentRef": {"name": "a"}})),
            &[(CategoryTaxonomy, "a"), (CategoryTaxonomy, "b")],
            &[(Product, "b1")],
        ),
        ("a file that comes", (File, "f", json!({"source": {"uri": "a:b"}})), &[(File, "f")], &[]),
        (
            "a collection",
            (Collection, "all", json!({"selector": {"matchLabels": {"x": "z"}}})),
            &[],
            &[(Collection, "all")],
        ),
    ];
    for (what, (kind, name, spec), answered, not_answered) in cases {
        let mut shop = shop();
        let mut reader = Reader::new(&shop);
        shop.put(kind, name, spec);
        reader.follow(&shop, &(kind, name.into()));
        reader.check(&shop);
        for (kind, name) in answered {
            assert!(reader.answers(*kind, name), "{what}: {kind:?} {name} waits");
        }
        for (kind, name) in not_answered {
            assert!(!reader.answers(*kind, name), "{what}: {kind:?} {name} does not wait");
        }
    }
}

#[test]
fn who_may_be_awaited_waits() {
    let mut shop = shop();
    shop.put(ProductVariant, "blue", json!({"productRef": {"name": "to-come"}}));
    let mut reader = Reader::new(&shop);
    shop.put(Product, "to-come", json!({}));
    reader.follow(&shop, &(Product, "to-come".into()));
    assert!(!reader.answers(Product, "to-come"), "nobody here knows of `blue`");
}
