//! Events, as they are printed: one at a time, at once.

use std::io::Write;

use anyhow::Result;
use chrono::Utc;
use serde_json::{Value, json};
use tidegate_client::Event;
use tidegate_model::yaml;

use super::columns::{Columns, Namespaces};
use super::table::Table;
use crate::cli::OutputFormat;
use crate::client::kinds::KindInfo;

const COLUMN_CHARS_MIN: usize = 16;

pub struct WatchPrinter<W> {
    out: W,
    format: OutputFormat,
    kind: KindInfo,
    columns: Columns,
    table: Table,
}

impl<W: Write> WatchPrinter<W> {
    pub fn new(out: W, format: OutputFormat, kind: KindInfo, namespaces: Namespaces) -> Self {
        let columns = Columns::new(&kind, namespaces);
        // Rows are printed as they come: room for those that are wider than
        // the first.
        let mut header: Vec<String> = columns.header().iter().map(|name| format!("{name:COLUMN_CHARS_MIN$}")).collect();
        header.insert(0, "EVENT   ".into());
        Self { out, format, kind, columns, table: Table::new(header) }
    }

    pub fn print(&mut self, event: &Event) -> Result<()> {
        let text = match self.format {
            OutputFormat::Table => self.row(event),
            OutputFormat::Json => format!("{}\n", serde_json::to_string(event)?),
            OutputFormat::Yaml => document(event),
            OutputFormat::Name => format!("{} {}/{}\n", event.event_type.as_str(), self.kind.resource(), name(event)),
        };
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    fn row(&mut self, event: &Event) -> String {
        let mut row = self.columns.row(&event.object.clone().unwrap_or_else(|| stand_in(event)), Utc::now());
        row.insert(0, event.event_type.as_str().into());
        self.table.render(&[row])
    }
}

/// For an object that went while nobody watched.
fn stand_in(event: &Event) -> Value {
    json!({"metadata": {"namespace": event.namespace, "name": event.name}})
}

fn document(event: &Event) -> String {
    let place = event.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
    let head = format!("---\n# {} {place}{} at {}\n", event.event_type.as_str(), name(event), event.resource_version);
    head + &yaml::emit(&event.object.clone().unwrap_or_else(|| stand_in(event)))
}

fn name(event: &Event) -> &str {
    event.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::columns::tests::kind;
    use super::*;
    use tidegate_client::EventType;

    fn check(format: OutputFormat, expected: Expect) {
        let mut out = Vec::new();
        let mut printer = WatchPrinter::new(&mut out, format, kind(json!([])), Namespaces::Shown);
        let event = |event_type, name: &str, object: Option<Value>| Event {
            event_type,
            namespace: Some("default".into()),
            name: Some(name.into()),
            resource_version: "7".into(),
            object,
            initial_events_end: false,
        };
        let object = json!({"metadata": {"name": "a", "namespace": "default"}});
        printer.print(&event(EventType::Added, "a", Some(object))).unwrap();
        printer.print(&event(EventType::Deleted, "long-name", None)).unwrap();
        expected.assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn formats_of_events() {
        check(
            OutputFormat::Table,
            expect![[r#"
                EVENT      NAMESPACE          NAME               READY              AGE
                ADDED      default            a
                DELETED    default            long-name
            "#]],
        );
        check(
            OutputFormat::Json,
            expect![[r#"
            {"type":"ADDED","namespace":"default","name":"a","resourceVersion":"7","object":{"metadata":{"name":"a","namespace":"default"}}}
            {"type":"DELETED","namespace":"default","name":"long-name","resourceVersion":"7","object":null}
        "#]],
        );
        check(
            OutputFormat::Yaml,
            expect![[r#"
            ---
            # ADDED default/a at 7
            metadata:
              name: a
              namespace: default
            ---
            # DELETED default/long-name at 7
            metadata:
              name: long-name
              namespace: default
        "#]],
        );
        check(
            OutputFormat::Name,
            expect![[r#"
            ADDED products.catalog.gitstore.dev/a
            DELETED products.catalog.gitstore.dev/long-name
        "#]],
        );
    }
}
