//! Any sequence of changes gives what the final objects give, in whichever
//! order they come; and whoever has something else to report was touched.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::super::CatalogKind::{CategoryTaxonomy, Collection, File, Product, ProductVariant};
use super::*;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Put(CatalogKind, String, Value, Value),
    Remove(CatalogKind, String),
    /// Its reconciler writes what is to be said.
    Reconcile(Index),
}

/// Few names, so that they meet.
fn name() -> impl Strategy<Value = String> {
    (0..5u8).prop_map(|at| format!("n{at}"))
}

fn reference() -> impl Strategy<Value = Value> {
    prop::option::of(name()).prop_map(|name| name.map_or(Value::Null, |name| json!({"name": name})))
}

fn media() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), any::<bool>()), 0..3).prop_map(|files| {
        files.into_iter().map(|(name, optional)| json!({"fileRef": {"name": name, "optional": optional}})).collect()
    })
}

fn labels() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[ab]", "[xy]", 0..3).prop_map(|labels| json!(labels))
}

fn selector() -> impl Strategy<Value = Value> {
    let expression =
        ("[ab]", prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"])).prop_map(|(key, operator)| {
            let values = if operator.ends_with("In") { json!(["x"]) } else { json!([]) };
            json!({"key": key, "operator": operator, "values": values})
        });
    prop_oneof![
        Just(Value::Null),
        (labels(), prop::collection::vec(expression, 0..3))
            .prop_map(|(labels, expressions)| json!({"matchLabels": labels, "matchExpressions": expressions})),
    ]
}

fn options() -> impl Strategy<Value = Value> {
    let option = |values: Vec<String>| json!([{"name": "color", "values": values}]);
    prop::collection::vec("[rg]", 0..3).prop_map(option)
}

fn object() -> impl Strategy<Value = (CatalogKind, Value)> {
    prop_oneof![
        (reference(), media())
            .prop_map(|(parent, media)| (CategoryTaxonomy, json!({"parentRef": parent, "media": media}))),
        (reference(), media(), options()).prop_map(|(category, media, options)| {
            (Product, json!({"categoryRef": category, "media": media, "options": options}))
        }),
        (reference(), "[st]?", "[rg]?").prop_map(|(product, sku, color)| {
            let selected = if color.is_empty() { json!([]) } else { json!([{"name": "color", "value": color}]) };
            (ProductVariant, json!({"productRef": product, "sku": sku, "selectedOptions": selected}))
        }),
        (selector(), media()).prop_map(|(selector, media)| (Collection, json!({"selector": selector, "media": media}))),
        any::<bool>().prop_map(|complete| (File, if complete { json!({"source": {"uri": "a:b"}}) } else { json!({}) })),
    ]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (object(), name(), labels()).prop_map(|((kind, spec), name, labels)| Op::Put(kind, name, labels, without_nulls(spec))),
        2 => (prop::sample::select(CatalogKind::ALL.to_vec()), name()).prop_map(|(kind, name)| Op::Remove(kind, name)),
        2 => any::<Index>().prop_map(Op::Reconcile),
    ]
}

fn without_nulls(mut spec: Value) -> Value {
    if let Value::Object(fields) = &mut spec {
        fields.retain(|_, value| !value.is_null());
    }
    spec
}

/// What a catalogue says that is given the same objects afresh.
fn from_scratch(shop: &Shop, backwards: bool) -> BTreeMap<(CatalogKind, String), Report> {
    let mut fresh = Catalog::default();
    let mut objects: Vec<_> = shop.objects.iter().collect();
    if backwards {
        objects.reverse();
    }
    for ((kind, name), object) in &objects {
        fresh.apply(*kind, SHOP, name, Some(object));
    }
    let plan = |(kind, name): &(CatalogKind, String)| fresh.plan(*kind, SHOP, name).unwrap();
    shop.objects.keys().map(|id| (id.clone(), plan(id))).collect()
}

/// Whose state it changed.
pub(super) fn step(shop: &mut Shop, op: &Op) -> Option<(CatalogKind, String)> {
    let before = shop.reports();
    let (itself, touched) = match op {
        Op::Put(kind, name, labels, spec) => {
            (Some((*kind, name.clone())), shop.put_labelled(*kind, name, labels.clone(), spec.clone()))
        }
        Op::Remove(kind, name) => (Some((*kind, name.clone())), shop.remove(*kind, name)),
        Op::Reconcile(at) if !shop.objects.is_empty() => {
            let (kind, name) = at.get(&shop.objects.keys().cloned().collect::<Vec<_>>()).clone();
            shop.reconcile(kind, &name);
            (Some((kind, name)), Vec::new())
        }
        Op::Reconcile(_) => (None, Vec::new()),
    };
    for (id, after) in shop.reports().into_iter().filter(|(id, _)| Some(id) != itself.as_ref()) {
        let shown = format!("{}/{}", id.0.kind(), id.1);
        assert!(before.get(&id) == Some(&after) || touched.contains(&shown), "{op:?} did not touch {shown}");
    }
    itself
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_index_is_what_its_objects_make_it(ops in prop::collection::vec(op(), 1..60)) {
        let mut shop = Shop::default();
        for op in &ops {
            step(&mut shop, op);
        }
        let reports = shop.reports();
        prop_assert_eq!(&reports, &from_scratch(&shop, false));
        prop_assert_eq!(&reports, &from_scratch(&shop, true));
        for (kind, name) in shop.objects.keys().cloned().collect::<Vec<_>>() {
            shop.remove(kind, &name);
        }
        prop_assert_eq!(shop.catalog.len(), 0, "nothing is kept of what is gone");
    }
}
