//! The door by which every object enters: prune, default, check.

use serde_json::Value;

use super::{Kind, KindVersion, metadata};
use crate::schema::object_meta;
use crate::schema::path::Errors;
use crate::{FieldError, FieldErrorReason, Object};

impl Kind {
    /// Makes `object` what will be stored, and says what is wrong with it. An
    /// object with errors must not be stored. `old` is its stored state, for
    /// rules about transitions. Admitting twice changes nothing.
    pub fn admit(&self, version: &KindVersion, object: &mut Object, old: Option<&Object>) -> Vec<FieldError> {
        let mut errors = Errors::default();
        object_meta::prune(object.metadata_mut());
        metadata::check(self, object, &mut errors);
        let mut value = Value::Object(std::mem::take(object.root_mut()));
        version.schema.prune(&mut value);
        match version.schema.default(&mut value) {
            Ok(()) => {
                let old = old.filter(|_| version.schema.has_rules()).map(|old| Value::Object(old.root().clone()));
                errors.extend(version.schema.validate(&value, old.as_ref()));
            }
            // Half filled in, it would be blamed for what is not its author's.
            Err(error) => errors.push("", FieldErrorReason::TooLong, format!("Too long: {error}")),
        }
        if let Value::Object(root) = value {
            *object.root_mut() = root;
        }
        if let Some(extra) = self.extra.filter(|_| errors.is_empty()) {
            errors.extend(extra(object));
        }
        errors.into_vec()
    }
}
