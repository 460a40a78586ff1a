//! Value validations: what a value must be beyond its type.
//!
//! The same shape serves a node and the branches of its `allOf`, `anyOf`,
//! `oneOf` and `not`, where a structural schema allows nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::{Number, Value};

use super::formats::Format;

#[derive(Debug, Default)]
pub struct Checks {
    pub enumeration: Option<Box<[Value]>>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub length_min: Option<u64>,
    pub length_max: Option<u64>,
    pub items_min: Option<u64>,
    pub items_max: Option<u64>,
    pub properties_min: Option<u64>,
    pub properties_max: Option<u64>,
    pub pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
    pub(super) junctors: Option<Box<Junctors>>,
}

#[derive(Debug, Clone)]
pub struct Bound {
    pub limit: Number,
    pub exclusive: bool,
}

/// A pattern as its author wrote it, with the expression that decides.
#[derive(Debug, Clone)]
pub struct Pattern(Arc<(Box<str>, Regex)>);

impl Pattern {
    pub(super) fn new(text: &str, regex: Regex) -> Self {
        Self(Arc::new((text.into(), regex)))
    }

    pub fn as_str(&self) -> &str {
        &self.0.0
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.0.1.is_match(text)
    }
}

#[derive(Debug, Default)]
pub(super) struct Junctors {
    pub all_of: Box<[Branch]>,
    pub any_of: Box<[Branch]>,
    pub one_of: Box<[Branch]>,
    pub not: Option<Box<Branch>>,
}

/// One alternative of a junctor. It may look into fields and items, which the
/// structural schema specifies elsewhere.
#[derive(Debug, Default)]
pub(super) struct Branch {
    /// Only as half of the int-or-string idiom.
    pub scalar: Option<ScalarType>,
    pub checks: Checks,
    pub required: Box<[Arc<str>]>,
    pub properties: BTreeMap<Arc<str>, Branch>,
    pub items: Option<Box<Branch>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarType {
    Integer,
    String,
}

impl Checks {
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            enumeration,
            minimum,
            maximum,
            multiple_of,
            length_min,
            length_max,
            items_min,
            items_max,
            properties_min,
            properties_max,
            pattern,
            format,
            junctors,
        } = self;
        let counts = [length_min, length_max, items_min, items_max, properties_min, properties_max];
        enumeration.is_none()
            && minimum.is_none()
            && maximum.is_none()
            && multiple_of.is_none()
            && counts.iter().all(|count| count.is_none())
            && pattern.is_none()
            && format.is_none()
            && junctors.is_none()
    }
}
