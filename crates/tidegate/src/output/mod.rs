//! What goes to stdout.
//!
//! Invariant: nothing that comes from an object reaches a terminal as a control
//! character, except as YAML or JSON, which escape them.

mod age;
mod columns;
mod jsonpath;
mod printer;
mod reader;
mod report;
mod sarif;
mod table;
mod watch_printer;

pub use age::{age, until};
pub use columns::Namespaces;
pub use printer::Printer;
pub use reader::{gone, unless_gone};
pub use report::Report;
pub use table::Table;
pub use watch_printer::WatchPrinter;

/// A kind without columns of its own.
#[cfg(test)]
pub fn test_kind() -> crate::client::kinds::KindInfo {
    columns::tests::kind(serde_json::json!([]))
}
