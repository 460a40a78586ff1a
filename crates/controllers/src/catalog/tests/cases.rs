//! One story each: what a change does to reports, and whom it touches.

use serde_json::json;

use super::super::CATEGORY_DEPTH_MAX;
use super::super::CatalogKind::{CategoryTaxonomy, Collection, File, Product, ProductVariant};
use super::*;

fn category(shop: &mut Shop, name: &str, parent: Option<&str>) -> Vec<String> {
    let parent = parent.map(|name| json!({"name": name}));
    shop.put(CategoryTaxonomy, name, json!({"title": name, "parentRef": parent}))
}

fn path(shop: &Shop, name: &str) -> String {
    let resolved = shop.resolved(CategoryTaxonomy, name);
    match resolved["path"].as_array() {
        None => "none".into(),
        Some(path) => {
            assert_eq!(resolved["depth"], path.len() - 1);
            path.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("/")
        }
    }
}

#[test]
fn moving_a_product_touches_two_categories() {
    let mut shop = Shop::default();
    for name in ["a", "b", "c"] {
        category(&mut shop, name, None);
    }
    let in_category = |name: &str| json!({"categoryRef": {"name": name}});
    for name in ["p", "q", "r"] {
        assert_eq!(shop.put(Product, name, in_category("a")), ["CategoryTaxonomy/a"]);
    }
    assert_eq!(shop.put(Product, "p", in_category("b")), ["CategoryTaxonomy/a", "CategoryTaxonomy/b"]);
    assert_eq!(shop.resolved(CategoryTaxonomy, "a")["productCount"], 2);
    assert_eq!(shop.resolved(CategoryTaxonomy, "b")["productCount"], 1);
    assert_eq!(shop.resolved(Product, "p"), json!({"category": "b", "variantCount": 0}));
    assert_eq!(shop.put(Product, "p", json!({"title": "new", "categoryRef": {"name": "b"}})), [""; 0]);
}

#[test]
fn reparenting_touches_the_subtree_and_both_parents() {
    let mut shop = Shop::default();
    for (name, parent) in
        [("a", None), ("b", None), ("x", Some("a")), ("y", Some("x")), ("z", Some("y")), ("w", Some("a"))]
    {
        category(&mut shop, name, parent);
    }
    assert_eq!(path(&shop, "z"), "a/x/y/z");
    let touched = category(&mut shop, "x", Some("b"));
    assert_eq!(touched, ["a", "b", "y", "z"].map(|name| format!("CategoryTaxonomy/{name}")));
    assert_eq!((path(&shop, "x"), path(&shop, "z")), ("b/x".into(), "b/x/y/z".into()));
    assert_eq!(shop.resolved(CategoryTaxonomy, "a")["childCount"], 1);
    assert_eq!(shop.resolved(CategoryTaxonomy, "b")["childCount"], 1);
}

#[test]
fn a_cycle_is_found_whatever_its_length_and_mended() {
    for length in [2, 3, 17, 1000] {
        let mut shop = Shop::default();
        for at in 0..length {
            category(&mut shop, &format!("c{at}"), Some(&format!("c{}", (at + 1) % length)));
        }
        category(&mut shop, "below", Some("c0"));
        for at in 0..length {
            assert_eq!(shop.ready(CategoryTaxonomy, &format!("c{at}")), "Cycle");
        }
        assert_eq!(shop.ready(CategoryTaxonomy, "below"), "AncestorInCycle");
        assert_eq!(path(&shop, "c0"), "none");
        category(&mut shop, "c1", None);
        assert_eq!(shop.ready(CategoryTaxonomy, "c1"), "Ready");
        assert_eq!(shop.ready(CategoryTaxonomy, "below"), "Ready");
        assert_eq!(path(&shop, "below"), "c1/c0/below");
    }
}

#[test]
fn the_message_shows_the_cycle() {
    let mut shop = Shop::default();
    for (name, parent) in [("a", "b"), ("b", "c"), ("c", "a")] {
        category(&mut shop, name, Some(parent));
    }
    let report = shop.report(CategoryTaxonomy, "a");
    let message = "it is its own ancestor: a → b → c → a; give one of them another parent, or none";
    assert_eq!(report.condition("Acyclic").unwrap().message, message);
}

#[test]
fn a_missing_parent_is_named_and_waited_for() {
    let mut shop = Shop::default();
    category(&mut shop, "a", Some("nowhere"));
    category(&mut shop, "b", Some("a"));
    assert_eq!(shop.ready(CategoryTaxonomy, "a"), "ParentNotFound");
    assert_eq!(shop.ready(CategoryTaxonomy, "b"), "AncestorNotFound");
    assert_eq!(category(&mut shop, "nowhere", None), ["CategoryTaxonomy/a", "CategoryTaxonomy/b"]);
    assert_eq!(path(&shop, "b"), "nowhere/a/b");
    assert_eq!(shop.remove(CategoryTaxonomy, "nowhere"), ["CategoryTaxonomy/a", "CategoryTaxonomy/b"]);
    assert_eq!(shop.ready(CategoryTaxonomy, "a"), "ParentNotFound");
}

#[test]
fn depth_is_limited() {
    let mut shop = Shop::default();
    category(&mut shop, "c0", None);
    for at in 1..=CATEGORY_DEPTH_MAX + 2 {
        category(&mut shop, &format!("c{at}"), Some(&format!("c{}", at - 1)));
    }
    assert_eq!(shop.ready(CategoryTaxonomy, &format!("c{CATEGORY_DEPTH_MAX}")), "Ready");
    assert_eq!(shop.ready(CategoryTaxonomy, &format!("c{}", CATEGORY_DEPTH_MAX + 1)), "TooDeep");
    assert_eq!(shop.ready(CategoryTaxonomy, &format!("c{}", CATEGORY_DEPTH_MAX + 2)), "TooDeep");
}

#[test]
fn a_category_that_comes_or_goes_touches_its_products() {
    let mut shop = Shop::default();
    shop.put(Product, "p", json!({"categoryRef": {"name": "a"}}));
    assert_eq!(shop.ready(Product, "p"), "CategoryNotFound");
    assert_eq!(category(&mut shop, "a", None), ["Product/p"]);
    assert_eq!(shop.ready(Product, "p"), "Ready");
    assert_eq!(shop.resolved(CategoryTaxonomy, "a")["productCount"], 1);
    assert_eq!(shop.remove(CategoryTaxonomy, "a"), ["Product/p"]);
    assert_eq!(shop.ready(Product, "p"), "CategoryNotFound");
}

fn variant(shop: &mut Shop, name: &str, sku: &str) -> Vec<String> {
    shop.put(ProductVariant, name, json!({"productRef": {"name": "p"}, "sku": sku}))
}

#[test]
fn the_oldest_keeps_the_sku_and_the_next_inherits_it() {
    let mut shop = Shop::default();
    shop.put(Product, "p", json!({}));
    variant(&mut shop, "old", "S");
    variant(&mut shop, "middle", "S");
    variant(&mut shop, "young", "S");
    let ready = |shop: &Shop| ["old", "middle", "young"].map(|name| shop.ready(ProductVariant, name));
    assert_eq!(ready(&shop), ["Ready", "SkuTaken", "SkuTaken"]);
    let message = &shop.report(ProductVariant, "young").condition("SkuUnique").unwrap().message.clone();
    assert_eq!(
        message,
        "sku S is held by ProductVariant old, which is older: give this one another, or remove that one"
    );

    let touched = variant(&mut shop, "old", "T");
    assert_eq!(touched, ["ProductVariant/middle", "ProductVariant/young"]);
    assert_eq!(ready(&shop), ["Ready", "Ready", "SkuTaken"]);
    assert_eq!(shop.remove(ProductVariant, "middle"), ["Product/p", "ProductVariant/young"]);
    assert_eq!(shop.ready(ProductVariant, "young"), "Ready");
    let touched = variant(&mut shop, "old", "S");
    assert_eq!(touched, ["ProductVariant/young"]);
    assert_eq!(shop.ready(ProductVariant, "young"), "SkuTaken");
}

#[test]
fn variants_follow_their_product() {
    let mut shop = Shop::default();
    let spec = json!({"productRef": {"name": "p"}, "selectedOptions": [{"name": "color", "value": "red"}]});
    shop.put(ProductVariant, "v", spec);
    assert_eq!(shop.ready(ProductVariant, "v"), "ProductNotFound");
    assert_eq!(shop.put(Product, "p", json!({})), ["ProductVariant/v"]);
    assert_eq!(shop.ready(ProductVariant, "v"), "OptionNotFound");
    let message = &shop.report(ProductVariant, "v").condition("OptionsAccepted").unwrap().message.clone();
    let remedy = "add it to its spec.options, or correct spec.selectedOptions";
    assert_eq!(message, &format!("Product p does not offer color (no such option): {remedy}"));
    shop.put(Product, "p", json!({"options": [{"name": "color", "values": ["blue"]}]}));
    let message = &shop.report(ProductVariant, "v").condition("OptionsAccepted").unwrap().message.clone();
    assert_eq!(message, &format!("Product p does not offer color=red (no such value): {remedy}"));
    let touched = shop.put(Product, "p", json!({"options": [{"name": "color", "values": ["blue", "red"]}]}));
    assert_eq!(touched, ["ProductVariant/v"]);
    assert_eq!(shop.ready(ProductVariant, "v"), "Ready");
    assert_eq!(shop.resolved(Product, "p")["variantCount"], 1);
    shop.put(Product, "p", json!({"options": [{"name": "color", "values": ["red", "red"]}]}));
    assert_eq!(shop.ready(Product, "p"), "DuplicateValue");
}

#[test]
fn prices_are_summed_up_and_judged() {
    let mut shop = Shop::default();
    shop.put(Product, "p", json!({}));
    let mut put = |prices: Value| {
        let spec = json!({"productRef": {"name": "p"}, "pricing": {"priceSet": {"name": "retail", "prices": prices}}});
        shop.put(ProductVariant, "v", spec);
        (shop.ready(ProductVariant, "v"), shop.resolved(ProductVariant, "v")["priceSet"].clone())
    };
    let price =
        |name: &str, currency: &str, amount: &str| json!({"name": name, "currencyCode": currency, "amount": amount});
    let (ready, resolved) = put(json!([price("a", "USD", "1"), price("b", "EUR", "-0.00"), price("", "EUR", "2")]));
    assert_eq!((ready.as_str(), resolved), ("Ready", json!({"priceCount": 3, "currencies": ["EUR", "USD"]})));
    assert_eq!(put(json!([price("a", "USD", "1"), price("a", "EUR", "1")])).0, "DuplicatePriceName");
    assert_eq!(put(json!([price("a", "USD", "-0.50")])).0, "NegativeAmount");
    let discount = json!({"currencyCode": "EUR", "amount": "-10", "strategy": {"type": "percentage"}});
    assert_eq!(put(json!([discount])).0, "Ready");
}

#[test]
fn collections_count_what_they_select() {
    let mut shop = Shop::default();
    let winter = json!({"title": "W", "selector": {"matchLabels": {"season": "winter"}}});
    let any = json!({"title": "A", "selector": {"matchExpressions": [{"key": "season", "operator": "Exists"}]}});
    shop.put(Collection, "winter", winter.clone());
    shop.put_labelled(Product, "p", json!({"season": "winter"}), json!({}));
    shop.put_labelled(Product, "q", json!({"season": "winter", "x": "y"}), json!({}));
    shop.put_labelled(Product, "r", json!({"x": "y"}), json!({}));
    shop.put(Collection, "any", any);
    shop.put(Collection, "none", json!({"title": "N"}));
    shop.put(Collection, "empty", json!({"title": "N", "selector": {}}));
    let counts = |shop: &Shop| {
        ["winter", "any", "none", "empty"].map(|name| shop.resolved(Collection, name)["productCount"].as_i64().unwrap())
    };
    assert_eq!(counts(&shop), [2, 2, 0, 0]);
    let touched = shop.put_labelled(Product, "p", json!({"season": "summer"}), json!({}));
    assert_eq!(touched, ["Collection/winter"]);
    assert_eq!(counts(&shop), [1, 2, 0, 0]);
    assert_eq!(shop.remove(Product, "q").len(), 2);
    assert_eq!(counts(&shop), [0, 1, 0, 0]);
    shop.put(Collection, "winter", json!({"title": "W", "selector": {"matchLabels": {"season": "summer"}}}));
    assert_eq!(counts(&shop), [1, 1, 0, 0]);
    shop.put(Collection, "winter", json!({"title": "W", "selector": {"matchLabels": {"a b": "c"}}}));
    assert_eq!(shop.ready(Collection, "winter"), "SelectorInvalid");
}

#[test]
fn a_missing_file_is_named_by_whoever_needs_it() {
    let mut shop = Shop::default();
    let media = |optional: bool| json!({"title": "x", "media": [{"fileRef": {"name": "f", "optional": optional}}]});
    for kind in [Product, CategoryTaxonomy, Collection] {
        shop.put(kind, "x", media(false));
        assert_eq!(shop.ready(kind, "x"), "FileNotFound");
    }
    shop.put(Product, "y", media(true));
    assert_eq!(shop.ready(Product, "y"), "Ready");
    let touched = shop.put(File, "f", json!({"source": {"uri": "https://a.example/b"}}));
    assert_eq!(touched, ["CategoryTaxonomy/x", "Collection/x", "Product/x"]);
    assert_eq!(shop.ready(Product, "x"), "Ready");
    shop.put(File, "f", json!({"source": {"type": "http"}}));
    assert_eq!(shop.ready(File, "f"), "SourceIncomplete");
}

/// Of ten thousand products one moves: nobody hears of it who is not concerned.
#[test]
fn work_is_in_proportion_to_the_change() {
    let mut shop = Shop::default();
    for at in 0..100 {
        category(&mut shop, &format!("c{at}"), None);
        shop.put(
            Collection,
            &format!("k{at}"),
            json!({"title": "k", "selector": {"matchLabels": {"shelf": format!("s{at}")}}}),
        );
    }
    let spec = |category: usize| json!({"categoryRef": {"name": format!("c{category}")}});
    for at in 0..10_000 {
        shop.put_labelled(Product, &format!("p{at}"), json!({"shelf": format!("s{}", at % 100)}), spec(at % 100));
    }
    let touched = shop.put_labelled(Product, "p5", json!({"shelf": "s6"}), spec(6));
    assert_eq!(touched, ["CategoryTaxonomy/c5", "CategoryTaxonomy/c6", "Collection/k5", "Collection/k6"]);
    assert_eq!(category(&mut shop, "c6", Some("c7")), ["CategoryTaxonomy/c7"]);
}

#[test]
fn a_report_that_is_written_is_recognized() {
    let mut shop = Shop::default();
    shop.put(Product, "p", json!({"categoryRef": {"name": "a"}}));
    category(&mut shop, "a", None);
    for (kind, name) in [(Product, "p"), (CategoryTaxonomy, "a")] {
        let says = |shop: &Shop| shop.catalog.says(kind, SHOP, name, &shop.report(kind, name));
        assert!(!says(&shop));
        shop.reconcile(kind, name);
        assert!(says(&shop));
    }
    shop.put(Product, "q", json!({"categoryRef": {"name": "a"}}));
    let report = shop.report(CategoryTaxonomy, "a");
    assert!(!shop.catalog.says(CategoryTaxonomy, SHOP, "a", &report));
}
