//! Reading one JSON object of a schema: each keyword has one type, and a
//! keyword of another type is an error at its place.

use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::path::{Errors, Path};

/// One schema object and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, 'p> {
    pub keywords: &'a Map<String, Value>,
    pub path: &'p Path<'p>,
}

impl<'a, 'p> Source<'a, 'p> {
    pub fn new(schema: &'a Value, path: &'p Path<'p>, errors: &mut Errors) -> Option<Self> {
        let keywords = schema.as_object();
        if keywords.is_none() {
            errors.invalid(path, "must be a schema object");
        }
        keywords.map(|keywords| Self { keywords, path })
    }

    /// A keyword that is absent or null is not said.
    pub fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.keywords.get(keyword).filter(|value| !value.is_null())
    }

    pub fn flag(&self, keyword: &str, errors: &mut Errors) -> bool {
        self.typed(keyword, "a boolean", Value::as_bool, errors).unwrap_or(false)
    }

    pub fn count(&self, keyword: &str, errors: &mut Errors) -> Option<u64> {
        self.typed(keyword, "a number that is not negative", Value::as_u64, errors)
    }

    pub fn number(&self, keyword: &str, errors: &mut Errors) -> Option<&'a Number> {
        self.typed(keyword, "a number", Value::as_number, errors)
    }

    pub fn text(&self, keyword: &str, errors: &mut Errors) -> Option<&'a str> {
        self.typed(keyword, "a string", Value::as_str, errors)
    }

    pub fn list(&self, keyword: &str, errors: &mut Errors) -> &'a [Value] {
        self.typed(keyword, "a list", Value::as_array, errors).map_or(&[], Vec::as_slice)
    }

    pub fn map(&self, keyword: &str, errors: &mut Errors) -> Option<&'a Map<String, Value>> {
        self.typed(keyword, "an object", Value::as_object, errors)
    }

    pub fn texts(&self, keyword: &str, errors: &mut Errors) -> Vec<&'a str> {
        let list = self.list(keyword, errors);
        let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        if texts.len() != list.len() {
            errors.invalid(self.path.field(keyword), "must be a list of strings");
        }
        texts
    }

    fn typed<T>(
        &self,
        keyword: &str,
        wanted: &str,
        read: impl Fn(&'a Value) -> Option<T>,
        errors: &mut Errors,
    ) -> Option<T> {
        let value = self.get(keyword)?;
        let read = read(value);
        if read.is_none() {
            errors.invalid(self.path.field(keyword), format!("must be {wanted}"));
        }
        read
    }
}

/// One copy of each distinct text of a schema: names and descriptions repeat.
#[derive(Default)]
pub(super) struct Texts(std::collections::HashSet<Arc<str>>);

impl Texts {
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return shared.clone();
        }
        let shared: Arc<str> = text.into();
        self.0.insert(shared.clone());
        shared
    }
}
