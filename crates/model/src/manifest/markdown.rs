//! Markdown with YAML front matter: `---`, YAML, `---`, then the body.
//!
//! A repository holds other Markdown, too: a file that does not speak of
//! `apiVersion` and `kind` is not ours and no error.

use serde_json::Value;

use super::{Body, Parsed};
use crate::yaml::{self, YamlError};

const FENCE: &str = "---";

/// Cheap enough for every file of a repository.
pub(super) fn may_have_front_matter(bytes: &[u8]) -> bool {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).starts_with(FENCE.as_bytes())
}

/// `None` if the file defines no object.
pub(super) fn parse(text: &str) -> Result<Option<Parsed<'_>>, YamlError> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return Ok(None) };
    let rest = &text[first.len()..];
    let Some((matter, body, matter_lines)) = split_at_fence(rest) else {
        let unclosed = || YamlError { line: 1, column: 1, message: "front matter has no closing `---`".into() };
        return if speaks_of_an_object(rest) { Err(unclosed()) } else { Ok(None) };
    };
    // The matter starts on line 2, the body below the closing fence.
    let body_line = matter_lines + 3;
    let value = match yaml::parse(matter) {
        Ok(value) => value,
        Err(_) if !speaks_of_an_object(matter) => return Ok(None),
        Err(error) => return Err(YamlError { line: error.line + 1, ..error }),
    };
    if !is_about_an_object(&value) {
        return Ok(None);
    }
    let mut parsed = Parsed::new(value, matter, 2);
    parsed.body = body_of(body, body_line);
    Ok(Some(parsed))
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == FENCE
}

/// What is before the fence, what is behind it, and the lines before it.
fn split_at_fence(text: &str) -> Option<(&str, &str, usize)> {
    let mut offset = 0;
    for (count, line) in text.split_inclusive('\n').enumerate() {
        if is_fence(line) {
            return Some((&text[..offset], &text[offset + line.len()..], count));
        }
        offset += line.len();
    }
    None
}

fn body_of(text: &str, line: usize) -> Option<Body> {
    let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
    let (blank_lines, blank_bytes) = blank.fold((0, 0), |(lines, bytes), line| (lines + 1, bytes + line.len()));
    let body = text[blank_bytes..].trim_end();
    (!body.is_empty()).then(|| Body { text: body.into(), line: line + blank_lines })
}

fn is_about_an_object(value: &Value) -> bool {
    value.get("apiVersion").is_some() || value.get("kind").is_some()
}

/// For matter that cannot be read: whether its author meant an object.
fn speaks_of_an_object(matter: &str) -> bool {
    matter.lines().any(|line| line.starts_with("apiVersion:") || line.starts_with("kind:"))
}
