//! Paths of the API.

use crate::claims::TypeId;

/// `/api/v1/namespaces/a/configmaps`, `/apis/apps/v1/deployments`.
pub fn collection(of: &TypeId, namespace: Option<&str>) -> String {
    let root = match of.group.as_str() {
        "" => format!("/api/{}", of.version),
        group => format!("/apis/{group}/{}", of.version),
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{}/{}", escape(namespace), of.resource),
        None => format!("{root}/{}", of.resource),
    }
}

pub fn object(of: &TypeId, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{}", collection(of, namespace), escape(name))
}

/// Names of RBAC objects may hold nearly anything.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for b in text.bytes() {
        match b {
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => escaped.push(b.into()),
            b => escaped.push_str(&format!("%{b:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let (core, apps) = (TypeId::new("", "v1", "configmaps"), TypeId::new("apps", "v1", "deployments"));
        assert_eq!(collection(&core, Some("a")), "/api/v1/namespaces/a/configmaps");
        assert_eq!(collection(&apps, None), "/apis/apps/v1/deployments");
        assert_eq!(object(&core, None, "system:a/b"), "/api/v1/configmaps/system%3Aa%2Fb");
    }
}
