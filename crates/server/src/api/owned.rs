//! What a repository owns in the store, by the provenance of each object.

use std::collections::BTreeMap;

use memchr::memmem::Finder;
use tidegate_admission::Provenance;
use tidegate_model::{Object, ObjectKey};
use tidegate_store::{Selection, StoreError};

use super::Api;

/// The objects of each path.
pub type Owned = BTreeMap<String, Vec<ObjectKey>>;

impl Api {
    /// Of `namespace/name`. Reads all objects, and understands those that may
    /// be its own: for folders of manifests, deleted repositories and comparing
    /// a store with Git, never on the way of a push. An index would be one more
    /// row of each write.
    pub fn owned_by(&self, repository: &str) -> Result<Owned, StoreError> {
        let (view, hint) = (self.store().view(), hint(repository));
        let finder = Finder::new(&hint);
        let mut paths = Owned::new();
        for kind in &self.kinds().order {
            for stored in view.scan(&Selection::all(kind.resource.clone()), None) {
                let stored = stored?;
                if finder.find(&stored.json).is_none() {
                    continue;
                }
                let object = Object::from_json(&stored.json);
                let source = object.as_ref().and_then(Provenance::of);
                if let Some(source) = source.filter(|source| source.repository == repository) {
                    paths.entry(source.path.to_owned()).or_default().push(stored.key);
                }
            }
        }
        Ok(paths)
    }
}

/// What the JSON of an object of `repository` has somewhere: the end of the name
/// as far as nobody writes it in another way (`/` may be `\/`), and a quote.
fn hint(repository: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let start = repository.trim_end_matches(is_plain).len();
    format!("{}\"", &repository[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_writes_the_name_the_hint_is_in_it() {
        for (repository, expected, written) in [
            ("shop/goods", "goods\"", &[r#"{"a":"shop/goods"}"#, r#"{"a":"shop\/goods"}"#][..]),
            ("shop/a.b-c", "a.b-c\"", &[r#""shop/a.b-c""#]),
            ("shop/gööds", "ds\"", &[r#""shop/gööds""#, r#""shop/g\u00f6\u00f6ds""#]),
            ("a\\", "\"", &[r#""a\\""#]),
            ("", "\"", &[r#""""#]),
        ] {
            assert_eq!(hint(repository), expected);
            assert!(written.iter().all(|json| json.contains(expected)), "{repository}");
        }
    }
}
