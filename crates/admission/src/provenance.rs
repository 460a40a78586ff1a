//! Where an object comes from, readable on the object itself.
//!
//! Three annotations that only the server writes. Repository and path say who
//! owns it; the commit is the one that last changed it, and is no change by
//! itself.

use serde_json::{Map, Value};
use tidegate_model::Object;

/// `namespace/name` of the repository that defines the object.
pub const SOURCE_REPOSITORY: &str = "tidegate.dev/source-repository";
/// The file in it.
pub const SOURCE_PATH: &str = "tidegate.dev/source-path";
/// The commit whose projection last changed the object.
pub const SOURCE_COMMIT: &str = "tidegate.dev/source-commit";

/// Annotations under this prefix are the server's.
const RESERVED: &str = "tidegate.dev/source-";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Provenance<'p> {
    pub repository: &'p str,
    pub path: &'p str,
}

impl<'p> Provenance<'p> {
    /// `None` for what the server made itself, such as its first namespaces.
    pub fn of(object: &'p Object) -> Option<Self> {
        let annotations = object.metadata().get("annotations")?;
        let text = |name: &str| annotations.get(name).and_then(Value::as_str);
        Some(Self { repository: text(SOURCE_REPOSITORY)?, path: text(SOURCE_PATH)? })
    }

    pub(crate) fn write(&self, commit: Option<&str>, annotations: &mut Map<String, Value>) {
        annotations.insert(SOURCE_REPOSITORY.into(), self.repository.into());
        annotations.insert(SOURCE_PATH.into(), self.path.into());
        if let Some(commit) = commit {
            annotations.insert(SOURCE_COMMIT.into(), commit.into());
        }
    }
}

pub(crate) fn is_reserved(annotation: &str) -> bool {
    annotation.starts_with(RESERVED)
}
