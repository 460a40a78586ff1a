//! What the index takes of an object, by name: read from its JSON once, and
//! from its record afterwards.
//!
//! Invariant: what the index holds depends on the facts of its objects alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_model::Object;

use super::CatalogKind;
use super::categories::CategoryFacts;
use super::collections::CollectionFacts;
use super::files::FileFacts;
use super::products::ProductFacts;
use super::table::Slot;
use super::variants::VariantFacts;
use crate::report::digest;

/// Of one object. A change of these types is a new
/// [`RECORD_FORMAT`](super::record::RECORD_FORMAT).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Facts<'f> {
    #[serde(borrow)]
    Category(CategoryFacts<'f>),
    #[serde(borrow)]
    Collection(CollectionFacts<'f>),
    #[serde(borrow)]
    File(FileFacts<'f>),
    #[serde(borrow)]
    Product(ProductFacts<'f>),
    #[serde(borrow)]
    Variant(VariantFacts<'f>),
}

impl<'f> Facts<'f> {
    pub fn of(kind: CatalogKind, object: &'f Object) -> Self {
        let fields = Fields::of(object);
        match kind {
            CatalogKind::CategoryTaxonomy => Self::Category(CategoryFacts::read(fields)),
            CatalogKind::Collection => Self::Collection(CollectionFacts::read(fields)),
            CatalogKind::File => Self::File(FileFacts::read(fields)),
            CatalogKind::Product => Self::Product(ProductFacts::read(fields)),
            CatalogKind::ProductVariant => Self::Variant(VariantFacts::read(fields)),
        }
    }

    /// What its report depends on, by name.
    pub fn references(&self) -> impl Iterator<Item = (CatalogKind, &'f str)> {
        let (common, one) = match self {
            Self::Category(facts) => (facts.common(), facts.parent().map(|name| (CatalogKind::CategoryTaxonomy, name))),
            Self::Collection(facts) => (facts.common(), None),
            Self::File(facts) => (facts.common(), None),
            Self::Product(facts) => {
                (facts.common(), facts.category().map(|name| (CatalogKind::CategoryTaxonomy, name)))
            }
            Self::Variant(facts) => (facts.common(), facts.product().map(|name| (CatalogKind::Product, name))),
        };
        common.files.iter().map(|name| (CatalogKind::File, *name)).chain(one)
    }

    pub fn kind(&self) -> CatalogKind {
        match self {
            Self::Category(_) => CatalogKind::CategoryTaxonomy,
            Self::Collection(_) => CatalogKind::Collection,
            Self::File(_) => CatalogKind::File,
            Self::Product(_) => CatalogKind::Product,
            Self::Variant(_) => CatalogKind::ProductVariant,
        }
    }
}

/// Of every kind of the catalogue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CommonFacts<'f> {
    pub generation: i64,
    /// Of what its status says: equal to the report's if nothing is to do.
    pub digest: u64,
    /// Files that it must have; an optional one may be missing.
    #[serde(borrow)]
    pub files: Vec<&'f str>,
}

impl<'f> CommonFacts<'f> {
    pub fn read(kind: CatalogKind, fields: Fields<'f>) -> Self {
        let files = fields.required_files().collect();
        Self { generation: fields.object().generation(), digest: fields.digest(kind.conditions()), files }
    }
}

/// The common facts, with slots for names.
pub(crate) struct Common {
    pub generation: i64,
    pub digest: u64,
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

    pub fn pairs(&self, pointer: &str, value: &str) -> Vec<(&'o str, &'o str)> {
        let text = |item: &'o Value, field: &str| item[field].as_str().unwrap_or_default();
        self.list(pointer).map(|item| (text(item, "name"), text(item, value))).collect()
    }

    /// In the order of their keys.
    pub fn labels(&self) -> Vec<(&'o str, &'o str)> {
        let pairs = self.object.metadata().get("labels").and_then(Value::as_object).into_iter().flatten();
        let mut pairs: Vec<_> = pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
        pairs.sort_unstable();
        pairs
    }
}

/// `spec.options` of a product: names and values.
pub(crate) type OptionFacts<'f> = Vec<(&'f str, Vec<&'f str>)>;

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

impl Selected {
    pub fn new(facts: &[(&str, &str)]) -> Self {
        Self(facts.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    pub fn facts(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

impl Options {
    pub fn read<'f>(fields: Fields<'f>) -> OptionFacts<'f> {
        let values = |item: &'f Value| item["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let option = |item: &'f Value| (item["name"].as_str().unwrap_or_default(), values(item).collect());
        fields.list("/options").map(option).collect()
    }

    pub fn new(facts: &OptionFacts<'_>) -> Self {
        let option = |(name, values): &(&str, Vec<&str>)| ProductOption {
            name: (*name).into(),
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        Self(facts.iter().map(option).collect())
    }

    pub fn facts(&self) -> OptionFacts<'_> {
        self.0.iter().map(|option| (&*option.name, option.values.iter().map(|value| &**value).collect())).collect()
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
