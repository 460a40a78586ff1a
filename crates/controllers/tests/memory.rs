//! What the index takes in memory: a million products must fit in 2 GiB,
//! with a variant for each of them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use serde_json::json;
use tidegate_controllers::catalog::{API_VERSION, Catalog, CatalogKind};
use tidegate_model::Object;

/// Enough that pages of the allocator do not matter; a table that doubles is as full as with four times as many.
const PRODUCTS: usize = 25_000;
const PAGE_BYTES: usize = 4096;
/// 2 GiB for a million, and half of it is left to the rest of the manager.
const PRODUCT_BYTES_MAX: usize = (1 << 30) / 1_000_000;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * PAGE_BYTES
}

fn put(catalog: &mut Catalog, kind: CatalogKind, name: &str, labels: serde_json::Value, spec: serde_json::Value) {
    let object = json!({
        "apiVersion": API_VERSION, "kind": kind.kind(), "spec": spec,
        "metadata": {"name": name, "namespace": "shop", "labels": labels, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    catalog.apply(kind, "shop", name, Some(&Object::from_value(object).unwrap()));
}

fn put_product(catalog: &mut Catalog, at: usize) {
    let name = format!("a-product-of-some-length-{at:08}");
    // Every tenth has labels of its own, the others share a thousand sets.
    let shelf = if at.is_multiple_of(10) { format!("own-{at}") } else { format!("shelf-{}", at % 1000) };
    let spec = json!({
        "title": "A title", "body": "Some text that is not kept.", "categoryRef": {"name": format!("category-{}", at % 5000)},
        "media": [{"fileRef": {"name": format!("photo-{at:08}")}}],
        "options": [{"name": "color", "values": ["black", "white"]}],
    });
    put(catalog, CatalogKind::Product, &name, json!({"season": "winter", "shelf": shelf}), spec);
    let spec = json!({
        "productRef": {"name": name}, "sku": format!("SKU-{at:012}"), "selectedOptions": [{"name": "color", "value": "black"}],
        "pricing": {"priceSet": {"prices": [{"currencyCode": "EUR", "amount": "1"}]}},
    });
    put(catalog, CatalogKind::ProductVariant, &format!("{name}-black"), json!({}), spec);
}

#[test]
fn a_million_products_fit() {
    let mut catalog = Catalog::default();
    put_product(&mut catalog, PRODUCTS);
    let before = resident_bytes();
    for at in 0..PRODUCTS {
        put_product(&mut catalog, at);
    }
    let each = resident_bytes().saturating_sub(before) / PRODUCTS;
    println!("{each} bytes for a product with one variant and one file reference");
    assert!(each < PRODUCT_BYTES_MAX, "{each} bytes a product");
    assert!(catalog.plan(CatalogKind::Product, "shop", "a-product-of-some-length-00000001").is_some());
}
