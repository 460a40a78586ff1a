//! From YAML text to JSON values.
//!
//! A stack of open collections is fed with the parser's events; nothing here
//! recurses, and every collection, alias and anchor is charged to a limit.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag, options};
use serde_json::{Map, Value};

use super::scalar::{key_text, resolve_plain, resolve_tagged};
use super::{YAML_ALIAS_BYTES_MAX, YAML_BYTES_MAX, YAML_DEPTH_MAX, YamlError};

#[derive(Clone, PartialEq, Debug)]
pub struct YamlDocument {
    pub value: Value,
    /// Where its content starts, counted from 1.
    pub line: usize,
    /// The bytes of the text that hold it.
    pub range: Range<usize>,
    /// The line at which `range` starts, counted from 1.
    pub range_line: usize,
}

/// Exactly one document; an empty text is `null`.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let mut documents = parse_documents(text)?;
    match documents.len() {
        0 => Ok(Value::Null),
        1 => Ok(documents.remove(0).value),
        _ => {
            let message = "expected one document, found another after `---`".into();
            Err(YamlError { line: documents[1].line, column: 1, message })
        }
    }
}

/// Every document of `text`.
pub fn parse_documents(text: &str) -> Result<Vec<YamlDocument>, YamlError> {
    if text.len() > YAML_BYTES_MAX {
        let message = format!("{} bytes are more than the {YAML_BYTES_MAX} allowed: split the file", text.len());
        return Err(YamlError { line: 1, column: 1, message });
    }
    let mut builder = Builder::default();
    for item in event_parser(text) {
        let (event, span) = item.map_err(|error| YamlError::at(error.marker(), error.info()))?;
        builder.accept(event, &span)?;
    }
    Ok(builder.documents)
}

pub(super) fn event_parser(text: &str) -> Parser<'_, StrInput<'_>> {
    // One more than we allow, so that the message is ours.
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: YAML_DEPTH_MAX + 1,
        block_nesting_limit: YAML_DEPTH_MAX + 1,
    };
    Parser::new_from_str_with_options(text, options)
}

#[derive(Default)]
struct Builder {
    documents: Vec<YamlDocument>,
    /// Of the open document.
    start: Marker,
    root: Option<(Node, usize)>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    alias_bytes: usize,
}

/// A finished value with what it costs to copy it.
#[derive(Clone)]
struct Node {
    value: Value,
    bytes: usize,
    /// Collections on its longest path; 0 for a scalar.
    height: usize,
}

/// A value costs at least this much, whatever its text.
const NODE_BYTES: usize = 32;

struct Frame {
    content: Content,
    anchor: usize,
    line: usize,
    bytes: usize,
    /// Of the highest child.
    height: usize,
}

enum Content {
    List(Vec<Value>),
    Map { fields: Map<String, Value>, merges: Vec<Value>, key: Option<Key> },
}

enum Key {
    Field(String),
    /// `<<`: the fields of its value are defaults of this map.
    Merge,
}

impl Builder {
    fn accept(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlError> {
        let at = &span.start;
        match event {
            Event::DocumentStart(..) => {
                self.start = *at;
                Ok(())
            }
            Event::DocumentEnd => {
                self.finish_document(span);
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), at),
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "seq", at)?;
                self.open(Content::List(Vec::new()), anchor, at)
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map", at)?;
                self.open(Content::Map { fields: Map::new(), merges: Vec::new(), key: None }, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.alias(id, at),
            _ => Ok(()),
        }
    }

    fn finish_document(&mut self, span: &Span) {
        let range = self.start.byte_offset().unwrap_or(0)..span.end.byte_offset().unwrap_or(0);
        self.anchors.clear();
        // A document of comments alone is none.
        if let Some((root, line)) = self.root.take().filter(|(root, _)| !root.value.is_null()) {
            let range_line = self.start.line().max(1);
            self.documents.push(YamlDocument { value: root.value, line, range, range_line });
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: &Marker,
    ) -> Result<(), YamlError> {
        let is_plain = style == ScalarStyle::Plain && tag.is_none();
        if is_plain && text == "<<" && self.expects_key() {
            return self.set_key(Key::Merge, at);
        }
        let value = match tag {
            Some(tag) => resolve_with_tag(tag, text),
            None if is_plain => resolve_plain(text),
            None => Ok(text.into()),
        };
        let value = value.map_err(|refusal| YamlError::at(at, refusal))?;
        self.finish_node(Node { value, bytes: NODE_BYTES + text.len(), height: 0 }, anchor, at)
    }

    fn open(&mut self, content: Content, anchor: usize, at: &Marker) -> Result<(), YamlError> {
        if self.expects_key() {
            return Err(YamlError::at(at, "a key must be a scalar"));
        }
        if self.stack.len() == YAML_DEPTH_MAX {
            return Err(too_deep(at));
        }
        self.stack.push(Frame { content, anchor, line: at.line(), bytes: NODE_BYTES, height: 0 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let value = match frame.content {
            Content::List(items) => Value::Array(items),
            Content::Map { mut fields, merges, .. } => {
                merges.into_iter().for_each(|merge| merge_defaults(&mut fields, merge));
                Value::Object(fields)
            }
        };
        let start = Marker::new(0, frame.line, 0);
        self.finish_node(Node { value, bytes: frame.bytes, height: frame.height + 1 }, frame.anchor, &start)
    }

    fn alias(&mut self, id: usize, at: &Marker) -> Result<(), YamlError> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(YamlError::at(at, "an alias inside the value that it names"));
        };
        if self.stack.len() + node.height > YAML_DEPTH_MAX {
            return Err(too_deep(at));
        }
        let bytes = node.bytes;
        self.charge(bytes, at)?;
        let node = self.anchors[&id].clone();
        self.finish_node(node, 0, at)
    }

    /// Anchors are charged as aliases are: each is a copy of its value.
    fn charge(&mut self, bytes: usize, at: &Marker) -> Result<(), YamlError> {
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.alias_bytes > YAML_ALIAS_BYTES_MAX {
            let message = format!("anchors and aliases add more than {YAML_ALIAS_BYTES_MAX} bytes: write values out");
            return Err(YamlError::at(at, message));
        }
        Ok(())
    }

    fn finish_node(&mut self, node: Node, anchor: usize, at: &Marker) -> Result<(), YamlError> {
        if anchor != 0 {
            self.charge(node.bytes, at)?;
            self.anchors.insert(anchor, node.clone());
        }
        if self.expects_key() {
            let key = key_text(&node.value).map_err(|refusal| YamlError::at(at, refusal))?;
            return self.set_key(Key::Field(key), at);
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some((node, at.line().max(1)));
            return Ok(());
        };
        frame.bytes += node.bytes;
        frame.height = frame.height.max(node.height);
        match &mut frame.content {
            Content::List(items) => items.push(node.value),
            Content::Map { fields, merges, key } => match key.take() {
                Some(Key::Field(key)) => drop(fields.insert(key, node.value)),
                _ if is_mergeable(&node.value) => merges.push(node.value),
                _ => {
                    let message = "`<<` merges a map or a list of maps: quote it if it is a key";
                    return Err(YamlError::at(at, message));
                }
            },
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { content: Content::Map { key: None, .. }, .. }))
    }

    fn set_key(&mut self, new: Key, at: &Marker) -> Result<(), YamlError> {
        let Some(Frame { content: Content::Map { fields, merges, key }, bytes, .. }) = self.stack.last_mut() else {
            return Ok(());
        };
        let duplicate = match &new {
            Key::Field(name) => fields.contains_key(name).then(|| name.clone()),
            Key::Merge => (!merges.is_empty()).then(|| "<<".to_string()),
        };
        if let Some(name) = duplicate {
            return Err(YamlError::at(at, format!("duplicate key `{}`", name.chars().take(64).collect::<String>())));
        }
        if let Key::Field(name) = &new {
            *bytes += NODE_BYTES + name.len();
        }
        *key = Some(new);
        Ok(())
    }
}

fn is_mergeable(source: &Value) -> bool {
    match source {
        Value::Object(_) => true,
        Value::Array(sources) => sources.iter().all(Value::is_object),
        _ => false,
    }
}

/// What the map says itself wins, then the earlier source.
fn merge_defaults(fields: &mut Map<String, Value>, source: Value) {
    match source {
        Value::Object(defaults) => {
            for (key, value) in defaults {
                fields.entry(key).or_insert(value);
            }
        }
        Value::Array(sources) => sources.into_iter().for_each(|source| merge_defaults(fields, source)),
        _ => {}
    }
}

fn resolve_with_tag(tag: &Tag, text: &str) -> Result<Value, String> {
    match tag.suffix_in_namespace("tag:yaml.org,2002:") {
        Some(suffix) => resolve_tagged(&suffix, text),
        // `! 5`: the text itself.
        None if tag.original() == "!" => Ok(text.into()),
        None => Err(unknown_tag(tag)),
    }
}

fn check_tag(tag: Option<&Tag>, expected: &str, at: &Marker) -> Result<(), YamlError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(expected) && tag.original() != "!" => {
            Err(YamlError::at(at, unknown_tag(tag)))
        }
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag) -> String {
    format!("the tag `{}` is not supported: write plain YAML without it", tag.original())
}

fn too_deep(at: &Marker) -> YamlError {
    YamlError::at(at, format!("nested deeper than {YAML_DEPTH_MAX} levels"))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
