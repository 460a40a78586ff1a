//! Which repository: a namespace and a name, safe to be part of a path.

use std::fmt;

use tidegate_model::syntax::{check_dns_label, check_dns_subdomain};
use tidegate_model::{GroupResource, ObjectKey};

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RepositoryId {
    pub namespace: Box<str>,
    pub name: Box<str>,
}

impl RepositoryId {
    /// The one that may define everything.
    pub fn control() -> Self {
        Self { namespace: "system".into(), name: "control".into() }
    }

    /// `None` for what no object can be called, such as `..`.
    pub fn new(namespace: &str, name: &str) -> Option<Self> {
        let is_good = check_dns_label(namespace).is_ok() && check_dns_subdomain(name).is_ok();
        is_good.then(|| Self { namespace: namespace.into(), name: name.into() })
    }

    /// `namespace/name`, as it is shown.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        Self::new(namespace, name)
    }

    pub fn resource() -> GroupResource {
        GroupResource::new("tidegate.dev", "repositories")
    }

    /// Of its `Repository` object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(Self::resource(), Some(&self.namespace), &self.name)
    }
}

impl fmt::Display for RepositoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_repository() {
        for good in ["system/control", "shop/a.b-c", "a/1"] {
            assert_eq!(RepositoryId::parse(good).unwrap().to_string(), good);
        }
        for bad in ["", "a", "a/", "/a", "../a", "a/..", "a/.git", "a/b/c", "A/b", "a.b/c", "a/b\0", "a/b%2f"] {
            assert_eq!(RepositoryId::parse(bad), None, "{bad}");
        }
    }
}
