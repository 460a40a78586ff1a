//! Whether a definition may take another's place while objects exist.

use super::{Kind, Scope};
use crate::FieldError;
use crate::schema::path::Errors;

impl Kind {
    /// What in `next` would make stored objects of `self` unreadable. The
    /// caller knows whether there are any.
    pub fn check_replacement(&self, next: &Self) -> Vec<FieldError> {
        let mut errors = Errors::default();
        let immutable = "Invalid value: field is immutable: delete the objects and the definition first";
        if self.resource.group != next.resource.group {
            errors.invalid("spec.group", immutable);
        }
        if self.resource.plural != next.resource.plural {
            errors.invalid("spec.names.plural", immutable);
        }
        if self.kind != next.kind {
            errors.invalid("spec.names.kind", format!("{immutable}; objects are stored as {}", self.kind));
        }
        if self.scope != next.scope {
            errors.invalid("spec.scope", format!("{immutable}; objects are stored as {}", scope_name(self.scope)));
        }
        let stored = &self.storage_version().name;
        if next.version(stored).is_none() {
            let message = format!(
                "Invalid value: must keep version {stored:?}, in which objects are stored; it need not be served"
            );
            errors.invalid("spec.versions", message);
        }
        errors.into_vec()
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    }
}
