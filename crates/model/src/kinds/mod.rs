//! Kinds: what types of object exist, built in or defined by a
//! CustomResourceDefinition, and the door an object enters by.
//!
//! Invariant: a `Kind` that exists is valid: its names are well formed, one
//! version is the storage version, every version's schema is compiled.

mod admit;
mod builtin;
mod crd;
mod metadata;
mod nearest;
mod replace;
mod set;
mod versions;

use std::sync::Arc;

pub use nearest::unknown_kind;
pub use set::KindSet;

use crate::schema::{NodeKind, Schema};
use crate::{FieldError, GroupResource, Object};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    Cluster,
    Namespaced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Ships inside the binary; a CustomResourceDefinition cannot replace it.
    Builtin,
    Crd,
}

#[derive(Debug)]
pub struct Kind {
    pub resource: GroupResource,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub singular: Arc<str>,
    pub short_names: Vec<Arc<str>>,
    pub categories: Vec<Arc<str>>,
    pub scope: Scope,
    /// In the order of the definition.
    pub versions: Vec<KindVersion>,
    /// Index into `versions`.
    pub storage: usize,
    pub origin: Origin,
    pub(crate) name_syntax: NameSyntax,
    /// What a schema cannot say; only the kind of definitions itself has any.
    pub(crate) extra: Option<fn(&Object) -> Vec<FieldError>>,
}

#[derive(Debug)]
pub struct KindVersion {
    pub name: Arc<str>,
    pub served: bool,
    pub storage: bool,
    pub deprecated: bool,
    pub deprecation_warning: Option<Arc<str>>,
    pub schema: Arc<Schema>,
    /// The `status` subresource: `.status` is written apart from the rest.
    pub has_status: bool,
    pub columns: Vec<PrinterColumn>,
    /// JSON paths as written, `.spec.color`.
    pub selectable_fields: Vec<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    pub name: Arc<str>,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub column_type: Arc<str>,
    pub json_path: Arc<str>,
    /// 0 is shown always, others in wide output.
    pub priority: i64,
    pub format: Option<Arc<str>>,
    pub description: Option<Arc<str>>,
}

/// What `metadata.name` may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameSyntax {
    Label,
    Subdomain,
    /// Anything that fits between two slashes: `system:reader`.
    PathSegment,
}

impl Kind {
    pub fn storage_version(&self) -> &KindVersion {
        &self.versions[self.storage]
    }

    /// The version called `name`, served or not.
    pub fn version(&self, name: &str) -> Option<&KindVersion> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    pub fn served_versions(&self) -> impl Iterator<Item = &KindVersion> {
        self.versions.iter().filter(|version| version.served)
    }

    pub fn api_version(&self, version: &KindVersion) -> String {
        match &*self.resource.group {
            "" => version.name.to_string(),
            group => format!("{group}/{}", version.name),
        }
    }
}

impl KindVersion {
    /// The kind declares `spec.body`: a Markdown file's text goes there.
    pub fn has_body(&self) -> bool {
        let body = self.schema.root().property("spec").and_then(|spec| spec.property("body"));
        body.is_some_and(|body| matches!(body.kind, NodeKind::String))
    }
}
