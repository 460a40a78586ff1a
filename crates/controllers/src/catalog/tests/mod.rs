//! The catalogue through its two doors: `apply` and `plan`.

mod cases;
mod part;
mod properties;
mod records;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_model::{Object, StatusMerge, merge_status};

use super::{API_VERSION, Catalog, CatalogKind};
use crate::report::Report;

const SHOP: &str = "shop";

/// A catalogue, and the objects in it.
#[derive(Default)]
struct Shop {
    catalog: Catalog,
    objects: BTreeMap<(CatalogKind, String), Object>,
    clock: i64,
}

impl Shop {
    /// Returns whom it touched, as `kind/name`.
    fn put(&mut self, kind: CatalogKind, name: &str, spec: Value) -> Vec<String> {
        self.put_labelled(kind, name, json!({}), spec)
    }

    fn put_labelled(&mut self, kind: CatalogKind, name: &str, labels: Value, spec: Value) -> Vec<String> {
        self.clock += 1;
        let id = (kind, name.to_owned());
        let before = self.objects.get(&id);
        let created = before
            .map_or(json!(format!("2026-01-01T00:{:02}:{:02}Z", self.clock / 60, self.clock % 60)), |before| {
                before.metadata()["creationTimestamp"].clone()
            });
        let generation = before.map_or(1, |before| before.generation() + 1);
        let object = json!({
            "apiVersion": API_VERSION, "kind": kind.kind(), "spec": spec, "status": before.and_then(Object::status),
            "metadata": {"name": name, "namespace": SHOP, "labels": labels, "creationTimestamp": created, "generation": generation},
        });
        let object = Object::from_value(object).unwrap();
        let touched = self.catalog.apply(kind, SHOP, name, Some(&object));
        self.objects.insert(id, object);
        shown(touched)
    }

    fn remove(&mut self, kind: CatalogKind, name: &str) -> Vec<String> {
        self.objects.remove(&(kind, name.to_owned()));
        shown(self.catalog.apply(kind, SHOP, name, None))
    }

    fn report(&self, kind: CatalogKind, name: &str) -> Report {
        self.catalog.plan(kind, SHOP, name).unwrap()
    }

    fn reports(&self) -> BTreeMap<(CatalogKind, String), Report> {
        self.objects.keys().map(|(kind, name)| ((*kind, name.clone()), self.report(*kind, name))).collect()
    }

    fn resolved(&self, kind: CatalogKind, name: &str) -> Value {
        self.report(kind, name).resolved().cloned().unwrap_or_default()
    }

    /// `Ready`, or the reason why not.
    fn ready(&self, kind: CatalogKind, name: &str) -> String {
        let report = self.report(kind, name);
        if report.is_ready() { "Ready".into() } else { report.condition("Ready").unwrap().reason.to_owned() }
    }

    /// Writes an object's report into its status, as its reconciler does.
    fn reconcile(&mut self, kind: CatalogKind, name: &str) {
        let report = self.report(kind, name);
        let object = self.objects.get_mut(&(kind, name.to_owned())).unwrap();
        let context = StatusMerge { now: Default::default(), generation: object.generation() };
        let merged = merge_status(object.status(), &report.patch(), &context).unwrap();
        object.root_mut().insert("status".into(), merged.status);
        assert_eq!(self.catalog.apply(kind, SHOP, name, Some(object)), [], "a status touches nobody");
    }
}

fn shown(touched: Vec<tidegate_model::ObjectKey>) -> Vec<String> {
    let kind = |key: &tidegate_model::ObjectKey| CatalogKind::of(&key.resource).unwrap().kind();
    touched.iter().map(|key| format!("{}/{}", kind(key), key.name)).collect()
}
