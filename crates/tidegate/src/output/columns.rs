//! From an object to the cells of its row.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::age::age;
use super::jsonpath::JsonPath;
use crate::client::kinds::{Column, KindInfo};

/// `NAMESPACE` if asked for, `NAME`, `READY` if the kind has a status, the
/// kind's own columns, `AGE`.
pub struct Columns {
    columns: Vec<(String, Source)>,
}

enum Source {
    Text(JsonPath),
    Time(JsonPath),
    /// A path beyond what we read.
    Unknown,
}

/// Whether rows of several namespaces are in one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Namespaces {
    Shown,
    Implied,
}

const READY: &str = "READY";
const AGE: &str = "AGE";

impl Columns {
    pub fn new(kind: &KindInfo, namespaces: Namespaces) -> Self {
        let own: Vec<&Column> = kind.columns.iter().filter(|column| column.priority == 0).collect();
        let has = |name: &str| own.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        let mut columns = Vec::new();
        if namespaces == Namespaces::Shown && kind.namespaced {
            columns.push(fixed("NAMESPACE", ".metadata.namespace"));
        }
        columns.push(fixed("NAME", ".metadata.name"));
        if kind.has_status && !has(READY) {
            columns.push(fixed(READY, r#".status.conditions[?(@.type=="Ready")].status"#));
        }
        columns.extend(own.iter().map(|column| (column.name.to_uppercase(), source(column))));
        if !has(AGE) {
            columns.push((AGE.into(), time(".metadata.creationTimestamp")));
        }
        Self { columns }
    }

    pub fn header(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    pub fn row(&self, object: &Value, now: DateTime<Utc>) -> Vec<String> {
        self.columns.iter().map(|(_, source)| cell(source, object, now)).collect()
    }
}

fn fixed(name: &str, path: &str) -> (String, Source) {
    (name.into(), JsonPath::parse(path).map_or(Source::Unknown, Source::Text))
}

fn time(path: &str) -> Source {
    JsonPath::parse(path).map_or(Source::Unknown, Source::Time)
}

fn source(column: &Column) -> Source {
    if column.column_type == "date" {
        return time(&column.json_path);
    }
    JsonPath::parse(&column.json_path).map_or(Source::Unknown, Source::Text)
}

fn cell(source: &Source, object: &Value, now: DateTime<Utc>) -> String {
    match source {
        Source::Unknown => String::new(),
        Source::Text(path) => joined(path.find(object).into_iter().map(text)),
        Source::Time(path) => joined(
            path.find(object).into_iter().filter_map(Value::as_str).map(|time| age(time, now).unwrap_or_default()),
        ),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => joined(items.iter().map(text)),
        other => other.to_string(),
    }
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;
    use tidegate_model::timestamp::parse_time;

    use super::*;

    pub fn kind(columns: Value) -> KindInfo {
        serde_json::from_value(json!({
            "apiVersion": "catalog.gitstore.dev/v1beta1", "kind": "Product", "group": "catalog.gitstore.dev",
            "plural": "products", "singular": "product", "shortNames": [], "namespaced": true, "hasStatus": true,
            "columns": columns,
        }))
        .unwrap()
    }

    pub fn product(name: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-11-15T11:00:00Z", "resourceVersion": "7"},
            "spec": {"title": "Desk Lamp", "tags": ["a", "b"], "stock": 3},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    fn check(kind: &KindInfo, namespaces: Namespaces, expected: &[(&str, &str)]) {
        let now = parse_time("2026-11-15T12:00:00Z").unwrap();
        let columns = Columns::new(kind, namespaces);
        let found: Vec<_> = columns.header().into_iter().zip(columns.row(&product("lamp"), now)).collect();
        let expected: Vec<_> = expected.iter().map(|(name, cell)| ((*name).to_owned(), (*cell).to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_kind_without_columns() {
        check(&kind(json!([])), Namespaces::Implied, &[("NAME", "lamp"), ("READY", "True"), ("AGE", "60m")]);
        check(
            &kind(json!([])),
            Namespaces::Shown,
            &[("NAMESPACE", "default"), ("NAME", "lamp"), ("READY", "True"), ("AGE", "60m")],
        );
        let cluster = KindInfo { namespaced: false, has_status: false, ..kind(json!([])) };
        check(&cluster, Namespaces::Shown, &[("NAME", "lamp"), ("AGE", "60m")]);
    }

    #[test]
    fn a_kind_with_columns_of_its_own() {
        let columns = json!([
            {"name": "Title", "type": "string", "jsonPath": ".spec.title", "priority": 0},
            {"name": "Tags", "type": "string", "jsonPath": ".spec.tags", "priority": 0},
            {"name": "Stock", "type": "integer", "jsonPath": ".spec.stock", "priority": 0},
            {"name": "Wide", "type": "string", "jsonPath": ".spec.title", "priority": 1},
            {"name": "Odd", "type": "string", "jsonPath": ".spec[", "priority": 0},
            {"name": "Missing", "type": "date", "jsonPath": ".spec.missing", "priority": 0},
        ]);
        check(
            &kind(columns),
            Namespaces::Implied,
            &[
                ("NAME", "lamp"),
                ("READY", "True"),
                ("TITLE", "Desk Lamp"),
                ("TAGS", "a,b"),
                ("STOCK", "3"),
                ("ODD", ""),
                ("MISSING", ""),
                ("AGE", "60m"),
            ],
        );
    }

    #[test]
    fn a_kind_that_says_ready_and_age_itself() {
        let columns = json!([
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "priority": 0},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 0},
        ]);
        check(&kind(columns), Namespaces::Implied, &[("NAME", "lamp"), ("READY", "True"), ("AGE", "60m")]);
    }
}
