//! A kind in the version that a caller asked for.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_model::ObjectKey;
use tidegate_model::kinds::{Kind, KindSet, KindVersion, Scope};

use super::error::ApiError;

/// Nothing that is admitted has a longer name; Kubernetes has the same limit.
const NAME_BYTES_MAX: usize = 253;

pub fn check_length(what: &str, value: Option<&str>) -> Result<(), ApiError> {
    match value {
        Some(value) if value.len() > NAME_BYTES_MAX => Err(ApiError::bad_request(format!(
            "`{what}` has {} bytes: a name has at most {NAME_BYTES_MAX}",
            value.len()
        ))),
        _ => Ok(()),
    }
}

#[derive(Clone, Debug)]
pub struct KindRef {
    pub kind: Arc<Kind>,
    pub api_version: Arc<str>,
    version: usize,
}

impl KindRef {
    pub fn find(kinds: &KindSet, api_version: &str, kind: &str) -> Result<Self, ApiError> {
        let not_found = || ApiError::kind_not_found(kinds, api_version, kind);
        let (found, served) = kinds.by_gvk(api_version, kind).ok_or_else(not_found)?;
        let version = found.versions.iter().position(|version| version.name == served.name).ok_or_else(not_found)?;
        Ok(Self { kind: found.clone(), api_version: api_version.into(), version })
    }

    pub fn version(&self) -> &KindVersion {
        &self.kind.versions[self.version]
    }

    /// Is this version still served by `kinds`?
    pub fn is_served(&self, kinds: &KindSet) -> bool {
        kinds.by_gvk(&self.api_version, &self.kind.kind).is_some()
    }

    pub fn key(&self, namespace: Option<&str>, name: &str) -> Result<ObjectKey, ApiError> {
        let kind = &self.kind.kind;
        check_length("name", Some(name))?;
        check_length("namespace", namespace)?;
        match (self.kind.scope, namespace) {
            (Scope::Namespaced, None) => {
                Err(ApiError::bad_request(format!("`{kind}` is namespaced: pass `namespace`")))
            }
            (Scope::Cluster, Some(_)) => Err(self.not_namespaced()),
            (_, namespace) => Ok(ObjectKey::new(self.kind.resource.clone(), namespace, name)),
        }
    }

    pub fn not_namespaced(&self) -> ApiError {
        ApiError::bad_request(format!("`{}` is cluster-scoped: leave `namespace` out", self.kind.kind))
    }

    /// The stored bytes in this version. Conversion is `None` in the sense of
    /// CRDs: only `apiVersion` differs, and it is the first member.
    pub fn serve(&self, json: Bytes) -> Bytes {
        const HEAD: &[u8] = br#"{"apiVersion":""#;
        let Some(rest) = json.strip_prefix(HEAD) else { return json };
        let Some(end) = rest.iter().position(|byte| *byte == b'"') else { return json };
        if &rest[..end] == self.api_version.as_bytes() {
            return json;
        }
        Bytes::from([HEAD, self.api_version.as_bytes(), &rest[end..]].concat())
    }
}
