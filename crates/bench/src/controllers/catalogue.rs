//! A catalogue whose statuses say what its controllers would say: products in
//! categories, a hundred in each.

use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use chrono::DateTime;
use serde_json::{Value, json};
use tidegate_controllers::catalog::{API_VERSION, Catalog, CatalogKind, GROUP};
use tidegate_model::{Object, StatusMerge, merge_status};
use tidegate_store::Write;

use crate::seed::{self, NAMESPACE};

pub const CATEGORY_PRODUCTS: usize = 100;

pub fn product_name(at: usize) -> String {
    format!("product-{at:07}")
}

pub fn category_name(at: usize) -> String {
    format!("category-{at:05}")
}

/// As it would be written in a file.
pub fn product(at: usize, category: usize) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Product",
        "metadata": {"name": product_name(at), "labels": {"season": "winter", "shelf": format!("s{}", at % 100)}},
        "spec": {
            "title": format!("Product {at}"), "body": "A lamp for desks, in two colours. ".repeat(12),
            "categoryRef": {"kind": "CategoryTaxonomy", "name": category_name(category)}, "tags": ["lamp", "desk"],
            "options": [{"name": "color", "title": "Colour", "values": ["black", "white"]}],
        },
    })
}

pub fn category(at: usize) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "CategoryTaxonomy", "metadata": {"name": category_name(at)},
        "spec": {"title": format!("Category {at}")},
    })
}

/// `count` products with their categories, all of them as reconciled.
pub async fn seed(data_dir: &Path, count: usize) -> anyhow::Result<()> {
    let mut failure = None;
    let shelves = (0..count.div_ceil(CATEGORY_PRODUCTS)).map_while(|at| {
        let products = at * CATEGORY_PRODUCTS..count.min((at + 1) * CATEGORY_PRODUCTS);
        shelf(at, products).map_err(|error| failure = Some(error)).ok()
    });
    seed::commit(data_dir, shelves.flatten().map(write)).await?;
    failure.map_or(Ok(()), Err)
}

/// The first products of one category, moved to another by a push: their
/// statuses speak of where they were.
pub async fn move_products(data_dir: &Path, from: usize, to: usize, count: usize) -> anyhow::Result<()> {
    let first = from * CATEGORY_PRODUCTS;
    let products = shelf(from, first..first + count)?.into_iter().skip(1).map(|(kind, mut product)| {
        product["spec"]["categoryRef"]["name"] = category_name(to).into();
        product["metadata"]["generation"] = 2.into();
        (kind, product)
    });
    seed::commit(data_dir, products.map(write)).await
}

/// A category with its products. What is said of them depends on nothing else.
fn shelf(at: usize, products: Range<usize>) -> anyhow::Result<Vec<(CatalogKind, Value)>> {
    let mut objects = vec![(CatalogKind::CategoryTaxonomy, stamped(category(at), 10_000_000 + at))];
    objects.extend(products.map(|product_at| (CatalogKind::Product, stamped(product(product_at, at), product_at))));
    let mut catalog = Catalog::default();
    let named = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    for (kind, object) in &objects {
        let parsed = Object::from_value(object.clone()).context("an object")?;
        catalog.apply(*kind, NAMESPACE, &named(object), Some(&parsed));
    }
    let context = StatusMerge { now: DateTime::UNIX_EPOCH, generation: 1 };
    for (kind, object) in &mut objects {
        let report = catalog.plan(*kind, NAMESPACE, &named(object)).context("a report")?;
        object["status"] = merge_status(None, &report.patch(), &context).ok().context("a status")?.status;
    }
    Ok(objects)
}

/// With what the server adds when it is pushed.
fn stamped(mut object: Value, uid: usize) -> Value {
    object["metadata"]["namespace"] = NAMESPACE.into();
    object["metadata"]["uid"] = format!("00000000-0000-4000-9000-{uid:012}").into();
    object["metadata"]["generation"] = 1.into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    object
}

fn write((kind, object): (CatalogKind, Value)) -> Write {
    seed::write(kind.plural(), GROUP, Some(NAMESPACE), object)
}
