//! One object of a file, and where its fields are.

use serde_json::Value;

use super::{Body, Diagnostic, Parsed};
use crate::{FieldError, Object, yaml};

/// A file has 3 MiB, and as many as 350,000 documents that are no objects.
const FILE_DIAGNOSTICS_MAX: usize = 100;

/// Borrows from the file, so that a field can be found in it again.
#[derive(Clone, Debug)]
pub struct Document<'f> {
    pub file: &'f str,
    /// Where the object starts, counted from 1.
    pub line: usize,
    /// As authored: nothing is checked beyond the shape of an object.
    pub object: Object,
    /// What follows the front matter of a Markdown file, without the blank
    /// lines around it; its kind says whether it may have one.
    pub body: Option<String>,
    body_line: usize,
    text: &'f str,
    text_line: usize,
}

impl<'f> Document<'f> {
    /// The line of the field at `path`, or of the deepest parent that is there.
    pub fn line_of(&self, path: &str) -> usize {
        let is_body = path == "spec.body" && self.object.spec().and_then(|spec| spec.get("body")).is_none();
        if self.body.is_some() && is_body {
            return self.body_line;
        }
        yaml::line_of(self.text, path).map_or(self.line, |line| self.text_line + line - 1)
    }

    pub fn diagnostic(&self, error: &FieldError) -> Diagnostic {
        Diagnostic {
            file: self.file.into(),
            line: Some(self.line_of(&error.path)),
            field: Some(error.path.clone()).filter(|path| !path.is_empty()),
            message: error.message.clone(),
        }
    }

    fn new(file: &'f str, object: Object, parsed: Source<'f>) -> Self {
        let (body, body_line) = match parsed.body {
            Some(Body { text, line }) => (Some(text), line),
            None => (None, parsed.line),
        };
        Self { file, line: parsed.line, object, body, body_line, text: parsed.text, text_line: parsed.text_line }
    }
}

/// What remains of `Parsed` without its value.
struct Source<'f> {
    line: usize,
    text: &'f str,
    text_line: usize,
    body: Option<Body>,
}

/// All documents, or what is wrong with each that is no object.
pub(super) fn finish_all<'f>(file: &'f str, parsed: Vec<Parsed<'f>>) -> Result<Vec<Document<'f>>, Vec<Diagnostic>> {
    let mut documents = Vec::with_capacity(parsed.len());
    let mut diagnostics = Vec::new();
    for Parsed { value, line, text, text_line, body } in parsed {
        let source = Source { line, text, text_line, body };
        match shape_error(&value) {
            Some(_) if diagnostics.len() == FILE_DIAGNOSTICS_MAX => break,
            Some(error) => diagnostics.push(shape_diagnostic(file, &source, error)),
            None => documents.extend(Object::from_value(value).map(|object| Document::new(file, object, source))),
        }
    }
    if diagnostics.is_empty() { Ok(documents) } else { Err(diagnostics) }
}

/// `None` exactly if `Object::from_value` takes the value.
fn shape_error(value: &Value) -> Option<(&'static str, &'static str)> {
    let Value::Object(root) = value else {
        return Some(("", "not an object: expected apiVersion, kind, metadata and so on"));
    };
    let is_text = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !is_text(root.get("apiVersion")) {
        return Some(("apiVersion", "is required, a string: every document under this path defines an object"));
    }
    if !is_text(root.get("kind")) {
        return Some(("kind", "is required, a string: every document under this path defines an object"));
    }
    let Some(metadata) = root.get("metadata").and_then(Value::as_object) else {
        return Some(("metadata", "is required, with the object's name"));
    };
    let name = "is required, a string: quote it if it looks like a number or a boolean";
    if is_text(metadata.get("name")) { None } else { Some(("metadata.name", name)) }
}

fn shape_diagnostic(file: &str, source: &Source<'_>, (field, message): (&str, &str)) -> Diagnostic {
    let line = yaml::line_of(source.text, field).map_or(source.line, |line| source.text_line + line - 1);
    Diagnostic { field: Some(field.into()).filter(|_| !field.is_empty()), ..Diagnostic::at(file, line, message) }
}
