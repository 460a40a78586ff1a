//! YAML in and out.
//!
//! In: what Kubernetes reads, as Kubernetes reads it (YAML 1.1 booleans and
//! octals included), but strict where it is lax: a duplicate key, an unknown
//! tag and a number that JSON cannot hold are errors with a line.
//! Out: one canonical text for each value, stable to the byte.
//!
//! Invariant: `parse(emit(value)) == value` for every JSON value.

mod emit;
mod locate;
mod parse;
#[cfg(test)]
mod properties;
mod quote;
mod scalar;

pub use emit::{emit, for_each_scalar};
pub use locate::line_of;
pub use parse::{YamlDocument, parse, parse_documents};

/// etcd's limit for a request is 1.5 MiB of JSON; YAML of that with its
/// indentation fits into twice as much.
pub const YAML_BYTES_MAX: usize = 3 * 1024 * 1024;
/// serde_json reads 127 levels, and what is stored must be read again, also
/// inside an answer that wraps it. A recursion of this depth fits any stack.
pub const YAML_DEPTH_MAX: usize = 100;
/// What aliases may add to a file, as much as it may have without them, so
/// that a file's cost stays in proportion to its length.
pub const YAML_ALIAS_BYTES_MAX: usize = YAML_BYTES_MAX;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    pub message: String,
}

impl YamlError {
    fn at(marker: &granit_parser::Marker, message: impl Into<String>) -> Self {
        Self { line: marker.line().max(1), column: marker.col() + 1, message: message.into() }
    }
}
