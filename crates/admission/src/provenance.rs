//! Where an object comes from, readable on the object itself.
//!
//! Four annotations that only the server writes. Repository and path say who
//! owns it; commit and author are those that last changed it, and are no change
//! by themselves.

use serde_json::{Map, Value};
use tidegate_model::Object;

/// `namespace/name` of the repository that defines the object.
pub const SOURCE_REPOSITORY: &str = "tidegate.dev/source-repository";
/// The file in it.
pub const SOURCE_PATH: &str = "tidegate.dev/source-path";
/// The commit whose projection last changed the object.
pub const SOURCE_COMMIT: &str = "tidegate.dev/source-commit";

/// Whoever wrote that change, as `Name <address>`.
pub const SOURCE_AUTHOR: &str = "tidegate.dev/source-author";

/// Annotations under this prefix are the server's.
const RESERVED: &str = "tidegate.dev/source-";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Provenance<'p> {
    pub repository: &'p str,
    pub path: &'p str,
}

/// The change that an object had last; nothing of it where no Git is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastChange<'p> {
    pub commit: Option<&'p str>,
    pub author: Option<&'p str>,
}

impl<'p> LastChange<'p> {
    pub fn of(object: &'p Object) -> Self {
        let annotations = object.metadata().get("annotations");
        let text = |name: &str| annotations.and_then(|annotations| annotations.get(name)).and_then(Value::as_str);
        Self { commit: text(SOURCE_COMMIT), author: text(SOURCE_AUTHOR) }
    }
}

impl<'p> Provenance<'p> {
    /// `None` for what the server made itself, such as its first namespaces.
    pub fn of(object: &'p Object) -> Option<Self> {
        let annotations = object.metadata().get("annotations")?;
        let text = |name: &str| annotations.get(name).and_then(Value::as_str);
        Some(Self { repository: text(SOURCE_REPOSITORY)?, path: text(SOURCE_PATH)? })
    }

    pub(crate) fn write(&self, change: LastChange<'_>, annotations: &mut Map<String, Value>) {
        annotations.insert(SOURCE_REPOSITORY.into(), self.repository.into());
        annotations.insert(SOURCE_PATH.into(), self.path.into());
        for (name, value) in [(SOURCE_COMMIT, change.commit), (SOURCE_AUTHOR, change.author)] {
            if let Some(value) = value {
                annotations.insert(name.into(), value.into());
            }
        }
    }
}

pub(crate) fn is_reserved(annotation: &str) -> bool {
    annotation.starts_with(RESERVED)
}
