//! What a caller wants to do, in the words of Kubernetes RBAC.

use std::fmt;
use std::sync::Arc;

use tidegate_model::GroupResource;

/// The verbs that Tidegate asks about. A rule may name others; they grant
/// nothing here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    Get,
    List,
    Watch,
    /// Status and finalizers, leases, a controller's own state: the rest is
    /// Git's.
    Patch,
    /// A token, on `serviceaccounts/token`.
    Create,
    /// Revokes a token, on `serviceaccounts/token`.
    Delete,
    Push,
    Fetch,
    /// Brings a repository up to date, on `repositories`.
    Sync,
}

impl Verb {
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Patch,
        Self::Create,
        Self::Delete,
        Self::Push,
        Self::Fetch,
        Self::Sync,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Patch => "patch",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Push => "push",
            Self::Fetch => "fetch",
            Self::Sync => "sync",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

pub const SUBRESOURCE_STATUS: &str = "status";
pub const SUBRESOURCE_FINALIZERS: &str = "finalizers";
pub const SUBRESOURCE_QUARANTINE: &str = "quarantine";
pub const SUBRESOURCE_TOKEN: &str = "token";

/// One question to the policy. Owned, because a watch asks it again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attributes {
    pub verb: Verb,
    /// Empty for the core group.
    pub group: Arc<str>,
    /// The plural.
    pub resource: Arc<str>,
    pub subresource: Option<&'static str>,
    /// `None` for cluster scope, and for all namespaces at once.
    pub namespace: Option<Arc<str>>,
    /// `None` for a list or a watch that is not restricted to one name.
    pub name: Option<Arc<str>>,
}

impl Attributes {
    pub fn new(verb: Verb, resource: &GroupResource) -> Self {
        Self {
            verb,
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            subresource: None,
            namespace: None,
            name: None,
        }
    }

    #[must_use]
    pub fn subresource(mut self, subresource: &'static str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    #[must_use]
    pub fn namespace(mut self, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(Into::into);
        self
    }

    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// `patch products/status.catalog.gitstore.dev "desk-lamp" in namespace "shop"`.
impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if let Some(subresource) = self.subresource {
            write!(f, "/{subresource}")?;
        }
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace:?}"),
            None => f.write_str(" at the cluster scope"),
        }
    }
}
