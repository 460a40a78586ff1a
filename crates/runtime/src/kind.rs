//! A kind as a controller names it.

use std::fmt;
use std::sync::Arc;

use tidegate_model::{GroupResource, GroupVersionKind, ObjectKey};

/// Cheap to clone. The version is the one in which objects are read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kind {
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    pub resource: GroupResource,
}

impl Kind {
    /// `Kind::new("catalog.gitstore.dev/v1beta1", "Product", "products")`.
    pub fn new(api_version: &str, kind: &str, plural: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self { api_version: api_version.into(), kind: kind.into(), resource: GroupResource::new(group, plural) }
    }

    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&self.api_version, &self.kind)
    }

    /// The key of one of its objects; no namespace for cluster scope.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey::new(self.resource.clone(), namespace, name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
