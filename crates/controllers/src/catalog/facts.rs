//! What an index keeps of an object, read from its JSON once.

use std::sync::Arc;

use serde_json::Value;
use tidegate_model::Object;

use super::table::Slot;
use crate::report::digest;

/// Of every kind of the catalogue.
pub(crate) struct Common {
    pub generation: i64,
    /// Of what its status says: equal to the report's if nothing is to do.
    pub digest: u64,
    /// Files that it must have; an optional one may be missing.
    pub files: Box<[Slot]>,
}

/// The fields of an object that the catalogue is about, where they are.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'o> {
    object: &'o Object,
    spec: &'o Value,
}

impl<'o> Fields<'o> {
    pub fn of(object: &'o Object) -> Self {
        Self { object, spec: object.spec().unwrap_or(&Value::Null) }
    }

    pub fn object(&self) -> &'o Object {
        self.object
    }

    pub fn spec(&self, pointer: &str) -> Option<&'o Value> {
        self.spec.pointer(pointer)
    }

    pub fn text(&self, pointer: &str) -> Option<&'o str> {
        self.spec(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub fn list(&self, pointer: &str) -> impl Iterator<Item = &'o Value> {
        self.spec(pointer).and_then(Value::as_array).into_iter().flatten()
    }

    pub fn digest(&self, owned: &[&str]) -> u64 {
        digest(self.object.status(), owned)
    }

    pub fn required_files(&self) -> impl Iterator<Item = &'o str> {
        let files = self.list("/media").filter_map(|media| media.get("fileRef"));
        let required = files.filter(|file| file["optional"].as_bool() != Some(true));
        required.filter_map(|file| file["name"].as_str())
    }

    /// Seconds; an object without a time is younger than all others.
    pub fn created(&self) -> i64 {
        let time = self.object.metadata().get("creationTimestamp").and_then(Value::as_str);
        time.and_then(tidegate_model::timestamp::parse_time).map_or(i64::MAX, |time| time.timestamp())
    }

    pub fn pairs(&self, pointer: &str, value: &str) -> Box<[(Box<str>, Box<str>)]> {
        let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().into();
        self.list(pointer).map(|item| (text(item, "name"), text(item, value))).collect()
    }
}

/// `spec.options` of a product.
#[derive(PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Options(Box<[ProductOption]>);

#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct ProductOption {
    pub name: Box<str>,
    pub values: Box<[Box<str>]>,
}

/// `spec.selectedOptions` of a variant: name and value.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Selected(pub Box<[(Box<str>, Box<str>)]>);

impl Options {
    pub fn read(fields: Fields<'_>) -> Self {
        let option = |item: &Value| ProductOption {
            name: item["name"].as_str().unwrap_or_default().into(),
            values: item["values"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect(),
        };
        Self(fields.list("/options").map(option).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &ProductOption> {
        self.0.iter()
    }

    pub fn get(&self, name: &str) -> Option<&ProductOption> {
        self.0.iter().find(|option| &*option.name == name)
    }
}

/// A value that is often the same, or none at all.
pub(crate) type Often<T> = Option<Arc<T>>;
