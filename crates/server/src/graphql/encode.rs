//! Compiled selections applied to stored bytes.
//!
//! Nothing is decoded that was not selected: an object is split into its
//! members, and a leaf is copied as it is stored.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tidegate_model::{EventType, ObjectKey, ResourceVersion};

use super::selection::{Selection, What};
use crate::api::kind_ref::KindRef;

/// An object of the store, about to be shown.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub kind: &'a KindRef,
    pub key: &'a ObjectKey,
    pub version: ResourceVersion,
    /// In the version that `kind` serves.
    pub json: &'a [u8],
}

/// How the nodes of a list, the result of a get or the object of an event are
/// written.
pub enum NodePlan {
    /// The generic `Resource`.
    Resource(Vec<(Box<str>, Pick)>),
    Typed(Selection),
}

#[derive(Debug)]
pub enum Pick {
    TypeName,
    ApiVersion,
    Kind,
    Namespace,
    Name,
    ResourceVersion,
    Uid,
    Generation,
    Object,
}

impl NodePlan {
    pub fn new(selection: Selection) -> Self {
        if &*selection.type_name != "Resource" {
            return Self::Typed(selection);
        }
        let picks = selection.fields.into_iter().map(|selected| {
            let pick = match &selected.what {
                What::TypeName => Pick::TypeName,
                What::Leaf(name) | What::Object(name, _) => match &**name {
                    "apiVersion" => Pick::ApiVersion,
                    "kind" => Pick::Kind,
                    "namespace" => Pick::Namespace,
                    "name" => Pick::Name,
                    "resourceVersion" => Pick::ResourceVersion,
                    "uid" => Pick::Uid,
                    "generation" => Pick::Generation,
                    _ => Pick::Object,
                },
            };
            (selected.key, pick)
        });
        Self::Resource(picks.collect())
    }

    pub fn write(&self, shown: Shown<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Typed(selection) => project(selection, as_text(shown.json), out),
            Self::Resource(picks) => {
                let mut members = Members::open(out);
                for (key, pick) in picks {
                    write_pick(pick, shown, members.key(key));
                }
                members.close();
            }
        }
    }
}

fn write_pick(pick: &Pick, shown: Shown<'_>, out: &mut Vec<u8>) {
    match pick {
        Pick::TypeName => write_text("Resource", out),
        Pick::ApiVersion => write_text(&shown.kind.api_version, out),
        Pick::Kind => write_text(&shown.kind.kind.kind, out),
        Pick::Namespace => write_optional(shown.key.namespace.as_deref(), out),
        Pick::Name => write_text(&shown.key.name, out),
        Pick::ResourceVersion => write_version(shown.version, out),
        Pick::Uid => write_metadata(shown.json, "uid", out),
        Pick::Generation => write_metadata(shown.json, "generation", out),
        Pick::Object => out.extend_from_slice(shown.json),
    }
}

fn write_metadata(json: &[u8], field: &str, out: &mut Vec<u8>) {
    let root = Split::of(as_text(json));
    let metadata = root.as_ref().and_then(|root| root.get("metadata")).and_then(|raw| Split::of(raw.get()));
    match metadata.as_ref().and_then(|metadata| metadata.get(field)) {
        Some(raw) => out.extend_from_slice(raw.get().as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

/// One event to one subscription.
pub struct EventPlan {
    type_name: Box<str>,
    fields: Vec<(Box<str>, EventPick)>,
}

enum EventPick {
    TypeName,
    Type,
    Kind,
    Namespace,
    Name,
    ResourceVersion,
    InitialEventsEnd,
    RawObject,
    Object(NodePlan),
}

impl EventPlan {
    pub fn new(selection: Selection) -> Self {
        let type_name = (*selection.type_name).into();
        let fields = selection.fields.into_iter().map(|selected| {
            let pick = match selected.what {
                What::TypeName => EventPick::TypeName,
                What::Object(_, sub) => EventPick::Object(NodePlan::Typed(sub)),
                What::Leaf(name) => match &*name {
                    "type" => EventPick::Type,
                    "kind" => EventPick::Kind,
                    "namespace" => EventPick::Namespace,
                    "name" => EventPick::Name,
                    "resourceVersion" => EventPick::ResourceVersion,
                    "initialEventsEnd" => EventPick::InitialEventsEnd,
                    _ => EventPick::RawObject,
                },
            };
            (selected.key, pick)
        });
        Self { type_name, fields: fields.collect() }
    }

    pub fn write_change(&self, change: EventType, shown: Shown<'_>, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        for (key, pick) in &self.fields {
            let out = members.key(key);
            match pick {
                EventPick::TypeName => write_text(&self.type_name, out),
                EventPick::Type => write_text(change.as_str(), out),
                EventPick::Kind => write_text(&shown.kind.kind.kind, out),
                EventPick::Namespace => write_optional(shown.key.namespace.as_deref(), out),
                EventPick::Name => write_text(&shown.key.name, out),
                EventPick::ResourceVersion => write_version(shown.version, out),
                EventPick::InitialEventsEnd => out.extend_from_slice(b"false"),
                EventPick::RawObject => out.extend_from_slice(shown.json),
                EventPick::Object(plan) => plan.write(shown, out),
            }
        }
        members.close();
    }

    pub fn write_bookmark(&self, kind: &KindRef, version: ResourceVersion, initial_end: bool, out: &mut Vec<u8>) {
        let mut members = Members::open(out);
        for (key, pick) in &self.fields {
            let out = members.key(key);
            match pick {
                EventPick::TypeName => write_text(&self.type_name, out),
                EventPick::Type => write_text("BOOKMARK", out),
                EventPick::Kind => write_text(&kind.kind.kind, out),
                EventPick::ResourceVersion => write_version(version, out),
                EventPick::InitialEventsEnd => out.extend_from_slice(if initial_end { b"true" } else { b"false" }),
                EventPick::Namespace | EventPick::Name | EventPick::RawObject | EventPick::Object(_) => {
                    out.extend_from_slice(b"null")
                }
            }
        }
        members.close();
    }
}

/// The selected members of `json`, in the order of the selection.
pub fn project(selection: &Selection, json: &str, out: &mut Vec<u8>) {
    if json.starts_with('[') {
        return project_list(selection, json, out);
    }
    // Stored data may predate the schema: what is not an object is null.
    let Some(split) = Split::of(json) else { return out.extend_from_slice(b"null") };
    let mut members = Members::open(out);
    for selected in &selection.fields {
        let out = members.key(&selected.key);
        match &selected.what {
            What::TypeName => write_text(&selection.type_name, out),
            What::Leaf(name) => match split.get(name) {
                Some(raw) => out.extend_from_slice(raw.get().as_bytes()),
                None => out.extend_from_slice(b"null"),
            },
            What::Object(name, sub) => match split.get(name) {
                Some(raw) => project(sub, raw.get(), out),
                None => out.extend_from_slice(b"null"),
            },
        }
    }
    members.close();
}

fn project_list(selection: &Selection, json: &str, out: &mut Vec<u8>) {
    let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        project(selection, item.get(), out);
    }
    out.push(b']');
}

/// An object's members, their values not looked into.
struct Split<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Split<'a> {
    fn of(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }
}

impl<'de> Deserialize<'de> for Split<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SplitVisitor;
        impl<'de> Visitor<'de> for SplitVisitor {
            type Value = Split<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Split<'de>, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some(key) = map.next_key::<KeyText<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Split(members))
            }
        }
        deserializer.deserialize_map(SplitVisitor)
    }
}

/// A key, borrowed unless it has escapes.
#[derive(Deserialize)]
struct KeyText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Writes `{`, keys with their commas, and `}`.
pub struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Members<'a> {
    pub fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// `key` is `"name":`. The caller writes the value.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    pub fn close(self) {
        self.out.push(b'}');
    }
}

pub fn write_text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("writing to memory does not fail");
}

pub fn write_optional(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => write_text(text, out),
        None => out.extend_from_slice(b"null"),
    }
}

pub fn write_version(version: ResourceVersion, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(version.to_string().as_bytes());
    out.push(b'"');
}

fn as_text(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap_or("null")
}
