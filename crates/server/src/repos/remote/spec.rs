//! `spec.remote` of a Repository object, which its schema has checked.

use serde_json::Value;

use crate::repos::id::RepositoryId;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteSpec {
    pub url: String,
    /// The name of a secret in the repository's namespace.
    pub secret: Option<String>,
}

impl RemoteSpec {
    /// `None` for a repository that is hosted here.
    pub fn of(spec: &Value) -> Option<Self> {
        let remote = spec.get("remote")?;
        Some(Self {
            url: remote["url"].as_str().unwrap_or_default().to_owned(),
            secret: remote["secretRef"]["name"].as_str().map(str::to_owned),
        })
    }

    /// For whoever pushes here what has to be pushed there.
    pub fn push_refused(&self, id: &RepositoryId) -> String {
        format!("{id} is fetched from {}: push there; this server follows it", self.url)
    }
}
