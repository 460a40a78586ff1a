//! A list, as it is printed.
//!
//! Invariant: what is held back is bounded. Until then a list that expires can
//! begin again unseen; after it, only an error tells the truth.

use std::io::Write;

use anyhow::{Result, bail};
use chrono::Utc;
use serde_json::{Value, json};
use tidegate_model::yaml;

use super::columns::{Columns, Namespaces};
use super::table::Table;
use crate::cli::OutputFormat;
use crate::client::kinds::KindInfo;
use crate::client::list::Sink;

/// Held back before the first byte is printed. With the objects of one page it
/// is what a `get` of any size costs.
const HELD_BYTES_MAX: usize = 64 << 20;

pub struct Printer<W> {
    out: W,
    format: OutputFormat,
    kind: KindInfo,
    columns: Columns,
    table: Table,
    held: Held,
    objects: u64,
    version: String,
    is_printing: bool,
}

#[derive(Default)]
struct Held {
    rows: Vec<Vec<String>>,
    text: String,
    bytes: usize,
}

impl<W: Write> Printer<W> {
    pub fn new(out: W, format: OutputFormat, kind: KindInfo, namespaces: Namespaces) -> Self {
        let columns = Columns::new(&kind, namespaces);
        let table = Table::new(columns.header());
        Self {
            out,
            format,
            kind,
            columns,
            table,
            held: Held::default(),
            objects: 0,
            version: String::new(),
            is_printing: false,
        }
    }

    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// One object that was asked for by its name.
    pub fn one(mut self, object: &Value) -> Result<()> {
        match self.format {
            OutputFormat::Json => self.held.text = format!("{object:#}\n"),
            OutputFormat::Yaml => self.held.text = yaml::emit(object),
            OutputFormat::Table | OutputFormat::Name => self.hold(object),
        }
        self.print()
    }

    /// After the last page.
    pub fn finish(mut self) -> Result<()> {
        if self.format == OutputFormat::Json {
            if self.objects == 0 {
                self.begin_json();
            }
            self.held.text.push_str("\n]}\n");
        }
        // A table of nothing has no header either; the caller says why.
        if self.objects == 0 && self.format == OutputFormat::Table {
            return Ok(());
        }
        self.print()
    }

    fn hold(&mut self, object: &Value) {
        match self.format {
            OutputFormat::Table => {
                let row = self.columns.row(object, Utc::now());
                self.held.bytes += row.iter().map(|cell| cell.len() + size_of::<String>()).sum::<usize>();
                self.held.rows.push(row);
            }
            OutputFormat::Yaml => self.held.text.push_str(&format!("---\n{}", yaml::emit(object))),
            OutputFormat::Json => {
                if self.objects == 0 {
                    self.begin_json();
                } else {
                    self.held.text.push_str(",\n");
                }
                self.held.text.push_str(&object.to_string());
            }
            OutputFormat::Name => {
                let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                self.held.text.push_str(&format!("{}/{name}\n", self.kind.resource()));
            }
        }
        self.objects += 1;
    }

    fn begin_json(&mut self) {
        let metadata = json!({"resourceVersion": self.version});
        self.held.text.push_str(&format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{metadata},"items":["#));
        self.held.text.push('\n');
    }

    fn print(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        if self.format == OutputFormat::Table {
            self.out.write_all(self.table.render(&held.rows).as_bytes())?;
        }
        self.out.write_all(held.text.as_bytes())?;
        self.out.flush()?;
        self.is_printing = true;
        Ok(())
    }
}

impl<W: Write> Sink for Printer<W> {
    fn page(&mut self, version: &str, objects: Vec<Value>) -> Result<()> {
        self.version = version.to_owned();
        for object in &objects {
            self.hold(object);
        }
        if self.held.bytes + self.held.text.len() > HELD_BYTES_MAX { self.print() } else { Ok(()) }
    }

    fn restart(&mut self) -> Result<()> {
        if self.is_printing {
            bail!(
                "the list expired while it was being printed, so what you see is not all: read it faster, or ask for less with a selector"
            );
        }
        self.held = Held::default();
        self.objects = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::super::columns::tests::{kind, product};
    use super::*;

    fn printed(format: OutputFormat, fill: impl FnOnce(Printer<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        fill(Printer::new(&mut out, format, kind(json!([])), Namespaces::Implied));
        // The age moves with the clock.
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| line.split("   True").next().unwrap_or_default().to_owned() + "\n").collect()
    }

    fn check(format: OutputFormat, expected: Expect) {
        expected.assert_eq(&printed(format, |mut printer| {
            printer.page("9", vec![product("old")]).unwrap();
            printer.restart().unwrap();
            printer.page("10", vec![json!({"metadata": {"name": "a"}})]).unwrap();
            printer.page("10", vec![json!({"metadata": {"name": "b"}})]).unwrap();
            assert_eq!(printer.objects(), 2);
            printer.finish().unwrap();
        }));
    }

    #[test]
    fn formats_of_a_list() {
        check(
            OutputFormat::Table,
            expect![[r#"
            NAME   READY   AGE
            a
            b
        "#]],
        );
        check(
            OutputFormat::Name,
            expect![[r#"
            products.catalog.gitstore.dev/a
            products.catalog.gitstore.dev/b
        "#]],
        );
        check(
            OutputFormat::Yaml,
            expect![[r#"
            ---
            metadata:
              name: a
            ---
            metadata:
              name: b
        "#]],
        );
        check(
            OutputFormat::Json,
            expect![[r#"
            {"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"10"},"items":[
            {"metadata":{"name":"a"}},
            {"metadata":{"name":"b"}}
            ]}
        "#]],
        );
    }

    #[test]
    fn nothing_is_still_a_list() {
        for (format, expected) in [(OutputFormat::Table, ""), (OutputFormat::Name, ""), (OutputFormat::Yaml, "")] {
            assert_eq!(printed(format, |printer| printer.finish().unwrap()), expected, "{format:?}");
        }
        let json = printed(OutputFormat::Json, |printer| printer.finish().unwrap());
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["items"], json!([]));
    }

    #[test]
    fn one_object_by_its_name() {
        let yaml = printed(OutputFormat::Yaml, |printer| printer.one(&json!({"kind": "X"})).unwrap());
        assert_eq!(yaml, "kind: X\n");
        let table = printed(OutputFormat::Table, |printer| printer.one(&product("lamp")).unwrap());
        assert!(table.starts_with("NAME") && table.contains("\nlamp"), "{table}");
    }

    #[test]
    fn a_large_list_is_printed_on_the_way_and_cannot_begin_again() {
        printed(OutputFormat::Json, |mut printer| {
            let text = "x".repeat(HELD_BYTES_MAX);
            printer.page("1", vec![json!(text)]).unwrap();
            assert!(printer.held.text.is_empty());
            assert!(printer.restart().unwrap_err().to_string().contains("not all"));
        });
    }
}
