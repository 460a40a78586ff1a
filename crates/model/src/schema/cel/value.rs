//! What a rule computes with: JSON where it lies, seen through its schema, and
//! the values that expressions make.
//!
//! Invariant: reading a field or an element copies nothing but a reference.

use std::rc::Rc;

use chrono::{DateTime, FixedOffset, TimeDelta};
use serde_json::{Map, Number, Value};

use super::super::node::{Additional, Node, NodeKind};
use super::kube::Foreign;

#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(&'a str),
    OwnText(Rc<str>),
    Bytes(Rc<[u8]>),
    Time(DateTime<FixedOffset>),
    Span(TimeDelta),
    /// An array of the object, with the node of the array.
    Items(&'a [Value], Option<&'a Node>),
    /// An object of the object, with its node.
    Fields(&'a Map<String, Value>, Option<&'a Node>),
    List(Rc<[Val<'a>]>),
    Map(Rc<[(Val<'a>, Val<'a>)]>),
    Optional(Option<Rc<Val<'a>>>),
    Type(&'static str),
    /// A value of a function library: an IP address, a quantity, a URL.
    Foreign(Foreign),
}

impl<'a> Val<'a> {
    pub fn of(value: &'a Value, node: Option<&'a Node>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => of_number(number, node),
            Value::String(text) => of_text(text, node),
            Value::Array(items) => Self::Items(items, node),
            Value::Object(fields) => Self::Fields(fields, node),
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::OwnText(text) => Some(text),
            _ => None,
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::UInt(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) | Self::OwnText(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "timestamp",
            Self::Span(_) => "duration",
            Self::Items(..) | Self::List(_) => "list",
            Self::Fields(..) | Self::Map(_) => "map",
            Self::Optional(_) => "optional",
            Self::Type(_) => "type",
            Self::Foreign(_) => "opaque",
        }
    }

    /// Elements of a list; `None` for anything else.
    pub fn list_len(&self) -> Option<usize> {
        match self {
            Self::Items(items, _) => Some(items.len()),
            Self::List(items) => Some(items.len()),
            _ => None,
        }
    }

    pub fn element(&self, at: usize) -> Option<Val<'a>> {
        match self {
            Self::Items(items, node) => items.get(at).map(|item| Val::of(item, node.and_then(items_node))),
            Self::List(items) => items.get(at).cloned(),
            _ => None,
        }
    }

    /// Entries of a map, as keys and values; `None` for anything else.
    pub fn entries(&self) -> Option<Vec<(Val<'a>, Val<'a>)>> {
        match self {
            Self::Fields(fields, node) => {
                let child = |name: &str| node.and_then(|node| node.field(name)).map(AsRef::as_ref);
                Some(fields.iter().map(|(key, value)| (Val::Text(key), Val::of(value, child(key)))).collect())
            }
            Self::Map(entries) => Some(entries.to_vec()),
            _ => None,
        }
    }

    pub fn map_len(&self) -> Option<usize> {
        match self {
            Self::Fields(fields, _) => Some(fields.len()),
            Self::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    /// A field of an object by its JSON name.
    pub fn field(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Self::Fields(fields, node) => {
                let child = node.and_then(|node| node.field(name)).map(AsRef::as_ref);
                fields.get(name).map(|value| Val::of(value, child))
            }
            Self::Map(entries) => entries.iter().find(|(key, _)| key.as_text() == Some(name)).map(|(_, v)| v.clone()),
            _ => None,
        }
    }

    /// A map's keys are data: a rule names them as they are.
    pub fn has_free_keys(&self) -> bool {
        match self {
            Self::Fields(_, Some(node)) => match &node.kind {
                NodeKind::Object(object) => !matches!(object.additional, Additional::Unspecified),
                _ => false,
            },
            Self::Map(_) => true,
            _ => false,
        }
    }

    /// About how much work a pass over the value is: one for each value and
    /// for each 16 bytes of text. Stops counting at `limit`.
    pub fn weight(&self, limit: u64) -> u64 {
        match self {
            Self::Text(text) => 1 + text.len() as u64 / 16,
            Self::OwnText(text) => 1 + text.len() as u64 / 16,
            Self::Bytes(bytes) => 1 + bytes.len() as u64 / 16,
            Self::Items(items, _) => sum(items.iter().map(|item| json_weight(item, limit)), limit),
            Self::Fields(fields, _) => sum(fields.values().map(|value| json_weight(value, limit)), limit),
            Self::List(items) => sum(items.iter().map(|item| item.weight(limit)), limit),
            Self::Map(entries) => {
                sum(entries.iter().map(|(key, value)| key.weight(limit) + value.weight(limit)), limit)
            }
            Self::Optional(Some(value)) => value.weight(limit),
            _ => 1,
        }
    }
}

fn of_number<'a>(number: &Number, node: Option<&Node>) -> Val<'a> {
    let is_double = node.is_some_and(|node| matches!(node.kind, NodeKind::Number));
    match number.as_i64() {
        Some(whole) if !is_double => Val::Int(whole),
        _ => match number.as_u64().filter(|_| !is_double) {
            Some(whole) => Val::UInt(whole),
            None => of_float(number, node),
        },
    }
}

fn of_float<'a>(number: &Number, node: Option<&Node>) -> Val<'a> {
    let is_integer = node.is_some_and(|node| matches!(node.kind, NodeKind::Integer));
    match super::super::formats::whole(number) {
        Some(whole) if is_integer => Val::Int(whole),
        _ => Val::Double(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Formats that have a type of their own in CEL; a text that does not parse
/// stays text, the format check reports it.
fn of_text<'a>(text: &'a str, node: Option<&Node>) -> Val<'a> {
    let format = node.filter(|node| matches!(node.kind, NodeKind::String)).and_then(|node| node.format.as_deref());
    let special = match format {
        Some("date-time") => DateTime::parse_from_rfc3339(text).ok().map(Val::Time),
        Some("date") => DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")).ok().map(Val::Time),
        Some("duration") => crate::schema::duration::parse_format(text).map(Val::Span),
        Some("byte") => super::library::decode_base64(text).map(|bytes| Val::Bytes(bytes.into())),
        _ => None,
    };
    special.unwrap_or(Val::Text(text))
}

fn items_node(node: &Node) -> Option<&Node> {
    match &node.kind {
        NodeKind::Array(array) => Some(&array.items),
        _ => None,
    }
}

fn json_weight(value: &Value, limit: u64) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 16,
        Value::Array(items) => sum(items.iter().map(|item| json_weight(item, limit)), limit),
        Value::Object(fields) => sum(fields.values().map(|value| json_weight(value, limit)), limit),
        _ => 1,
    }
}

fn sum(mut weights: impl Iterator<Item = u64>, limit: u64) -> u64 {
    let counted = weights.try_fold(1, |sum, weight| if sum < limit { Ok(sum + weight) } else { Err(sum) });
    counted.unwrap_or_else(|sum| sum)
}
