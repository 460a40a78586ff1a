//! One object, one path: `{group/}{version}/{resource}/{namespace/}{name}.yaml`.
//!
//! Invariant: two keys never share a path, not even on a file system that
//! ignores case, and no part of a path means anything to git or to a shell.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// The longest file name that common file systems take.
pub const PATH_COMPONENT_BYTES_MAX: usize = 255;
/// Of a shortened name: leaves room for the mark, 32 hex digits and `.yaml`.
const SHORTENED_BYTES: usize = 200;
/// Between a shortened name and its hash. No escape produces it.
const SHORTENED_MARK: &str = "%~";
const SUFFIX: &str = ".yaml";
/// What Windows takes for a device, whatever follows the first dot.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Which object of the cluster, in the version in which it is watched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceKey {
    /// Empty for the core group.
    pub group: Arc<str>,
    pub version: Arc<str>,
    /// The plural.
    pub resource: Arc<str>,
    /// `None` for cluster scope.
    pub namespace: Option<Arc<str>>,
    pub name: Arc<str>,
}

impl ResourceKey {
    pub fn new(group: &str, version: &str, resource: &str, namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.map(Into::into);
        Self { group: group.into(), version: version.into(), resource: resource.into(), namespace, name: name.into() }
    }

    /// Below the base folder.
    pub fn path(&self) -> String {
        let folder = Self::folder(&self.group, &self.version, &self.resource, self.namespace.as_deref());
        format!("{folder}/{}", component(&self.name, SUFFIX))
    }

    /// Where the objects of a type are, of one namespace or of all.
    pub fn folder(group: &str, version: &str, resource: &str, namespace: Option<&str>) -> String {
        let parents = [(!group.is_empty()).then_some(group), Some(version), Some(resource), namespace];
        let parts: Vec<_> = parents.into_iter().flatten().map(|part| component(part, "")).collect();
        parts.join("/")
    }
}

/// `v1/configmaps/default/app-config`: for messages, with the name as it is
/// but for characters that would break a line.
impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parents = [(!self.group.is_empty()).then_some(&self.group), Some(&self.version), Some(&self.resource)];
        for part in parents.into_iter().flatten().chain(self.namespace.as_ref()) {
            write!(f, "{part}/")?;
        }
        self.name.chars().try_for_each(|c| if c.is_control() { write!(f, "?") } else { write!(f, "{c}") })
    }
}

/// The resource of the object whose file this would be: the folder above the
/// file or above its namespace.
pub fn resource_of_path(path: &str, is_namespaced: bool) -> Option<String> {
    let mut parents = path.rsplit('/').skip(if is_namespaced { 2 } else { 1 });
    parents.next().and_then(unescape)
}

/// What was escaped; `None` if it is shortened or no escape of anything.
pub fn unescape(component: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(component.len());
    let mut rest = component.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// One part of a path. `%` cannot be in a name, so an escape is never a name.
fn component(text: &str, suffix: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + suffix.len());
    let escapes_first = text.starts_with('.') || is_device(text);
    for (at, byte) in text.bytes().enumerate() {
        let is_plain = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
        if is_plain && !(at == 0 && escapes_first) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02x}"));
        }
    }
    if escaped.len() + suffix.len() > PATH_COMPONENT_BYTES_MAX {
        let hash: String = Sha256::digest(text.as_bytes())[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        escaped.truncate(SHORTENED_BYTES);
        escaped.push_str(SHORTENED_MARK);
        escaped.push_str(&hash);
    }
    escaped + suffix
}

fn is_device(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or_default();
    let is_port = (stem.starts_with("com") || stem.starts_with("lpt")) && stem.len() == 4 && !stem.ends_with('0');
    DEVICES.contains(&stem) || is_port && stem.ends_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(key: (&str, &str, &str, Option<&str>, &str), path: &str) {
        let (group, version, resource, namespace, name) = key;
        assert_eq!(ResourceKey::new(group, version, resource, namespace, name).path(), path);
    }

    #[test]
    fn paths() {
        check(("", "v1", "configmaps", Some("default"), "app"), "v1/configmaps/default/app.yaml");
        check(("apps", "v1", "deployments", Some("a"), "b.c"), "apps/v1/deployments/a/b.c.yaml");
        check(("", "v1", "namespaces", None, "a"), "v1/namespaces/a.yaml");
        let rbac = "rbac.authorization.k8s.io";
        let path = "rbac.authorization.k8s.io/v1/clusterroles/system%3anode.yaml";
        check((rbac, "v1", "clusterroles", None, "system:node"), path);
        check(("", "v1", "r", Some("con"), "nul"), "v1/r/%63on/%6eul.yaml");
        check(("", "v1", "r", Some("com1"), "com0.x"), "v1/r/%63om1/com0.x.yaml");
        check(("", "v1", "r", None, ".git"), "v1/r/%2egit.yaml");
        check(("", "..", "../x", Some(".git"), "a/../b"), "%2e./%2e.%2fx/%2egit/a%2f..%2fb.yaml");
        check(("", "v1", "r", None, "Ärger\n"), "v1/r/%c3%84rger%0a.yaml");
        check(("", "v1", "r", None, "A"), "v1/r/%41.yaml");
    }

    #[test]
    fn long_names_are_shortened_and_stay_apart() {
        let path = |last: &str| ResourceKey::new("", "v1", "r", None, &(":".repeat(200) + last)).path();
        let (a, b) = (path("a"), path("b"));
        assert_ne!(a, b);
        assert!(a.len() - "v1/r/".len() <= PATH_COMPONENT_BYTES_MAX, "{a}");
        assert_eq!(unescape(a.trim_start_matches("v1/r/")), None);
    }

    #[test]
    fn a_key_is_readable() {
        let key = ResourceKey::new("g", "v1", "clusterroles", None, "system:a\nb");
        assert_eq!(key.to_string(), "g/v1/clusterroles/system:a?b");
        let key = ResourceKey::new("", "v1", "configmaps", Some("default"), "app-config");
        assert_eq!(key.to_string(), "v1/configmaps/default/app-config");
    }

    #[test]
    fn the_resource_of_a_path() {
        assert_eq!(resource_of_path("g/v1/pods/a/b.yaml", true).as_deref(), Some("pods"));
        assert_eq!(resource_of_path("v1/nodes/b.yaml", false).as_deref(), Some("nodes"));
        assert_eq!(resource_of_path("b.yaml", false), None);
    }

    proptest! {
        /// `%` is in no name; the rest of what RBAC allows is.
        #[test]
        fn escapes_are_reversible_and_harmless(name in "[^%/]{1,60}") {
            let escaped = component(&name, SUFFIX);
            prop_assert!(escaped.len() <= PATH_COMPONENT_BYTES_MAX);
            prop_assert!(escaped.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"%._-~".contains(&b)));
            prop_assert!(!escaped.starts_with('.'));
            if !escaped.contains(SHORTENED_MARK) {
                prop_assert_eq!(unescape(escaped.strip_suffix(SUFFIX).unwrap()), Some(name));
            }
        }

        #[test]
        fn two_names_have_two_paths(a in "[a-cA-C:.%]{1,4}", b in "[a-cA-C:.%]{1,4}") {
            let same = component(&a, "").eq_ignore_ascii_case(&component(&b, ""));
            prop_assert_eq!(same, a == b);
        }
    }
}
