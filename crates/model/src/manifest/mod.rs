//! From a file of a repository to the objects that it defines.
//!
//! YAML (several documents a file), JSON, and Markdown with YAML front matter.
//! What is wrong is data: diagnostics with file, line and field.

mod diagnostic;
mod document;
mod json;
mod markdown;

pub use diagnostic::Diagnostic;
pub use document::Document;

use crate::yaml::{self, YAML_BYTES_MAX, YamlError};

/// One limit for every format.
pub const MANIFEST_BYTES_MAX: usize = YAML_BYTES_MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Yaml,
    Json,
    Markdown,
}

/// Whether `path` has the name of a file that can define objects.
pub fn is_manifest_path(path: &str) -> bool {
    Format::of(path).is_some()
}

/// The objects that a file defines: none if it is of another format, or
/// Markdown that is not about an object. A YAML or JSON document that is not
/// an object is an error: under a projected path nothing is silently skipped.
pub fn parse_file<'f>(path: &'f str, bytes: &'f [u8]) -> Result<Vec<Document<'f>>, Vec<Diagnostic>> {
    let Some(format) = Format::of(path) else { return Ok(Vec::new()) };
    if format == Format::Markdown && !markdown::may_have_front_matter(bytes) {
        return Ok(Vec::new());
    }
    let text = text_of(path, bytes).map_err(|diagnostic| vec![diagnostic])?;
    let parsed = match format {
        Format::Yaml => yaml_documents(text),
        Format::Json => json::parse(text).map(|value| vec![Parsed::new(value, text, 1)]),
        Format::Markdown => markdown::parse(text).map(|parsed| parsed.into_iter().collect()),
    };
    let parsed = parsed.map_err(|error| vec![Diagnostic::at(path, error.line, error.message)])?;
    document::finish_all(path, parsed)
}

/// A value before it is known to be an object.
struct Parsed<'f> {
    value: serde_json::Value,
    /// Where its content starts.
    line: usize,
    text: &'f str,
    /// The line of the file at which `text` starts.
    text_line: usize,
    body: Option<Body>,
}

struct Body {
    text: String,
    line: usize,
}

impl<'f> Parsed<'f> {
    fn new(value: serde_json::Value, text: &'f str, line: usize) -> Self {
        Self { value, line, text, text_line: line, body: None }
    }
}

impl Format {
    fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "md" | "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }
}

fn text_of<'f>(path: &str, bytes: &'f [u8]) -> Result<&'f str, Diagnostic> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let message = format!("{} bytes are more than the {MANIFEST_BYTES_MAX} allowed: split the file", bytes.len());
        return Err(Diagnostic::of_file(path, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Diagnostic::at(path, line, "not UTF-8: save the file as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn yaml_documents<'f>(text: &'f str) -> Result<Vec<Parsed<'f>>, YamlError> {
    let documents = yaml::parse_documents(text)?;
    let parsed = documents.into_iter().map(|document| Parsed {
        value: document.value,
        line: document.line,
        text: text.get(document.range).unwrap_or(text),
        text_line: document.range_line,
        body: None,
    });
    Ok(parsed.collect())
}

#[cfg(test)]
mod tests;
