//! How an object and those that are sent along with it find each other. Pure.
//!
//! A relation is a join: the object asks for a place, and everything that is
//! at the place is sent along. So whoever asks for a place has to be called
//! again when something comes to it, changes at it, or leaves it.

use std::sync::Arc;

use serde_json::Value;
use tidegate_model::kinds::Scope;
use tidegate_model::{Object, ObjectKey, ResourceVersion};
use tidegate_runtime::Kind;
use xxhash_rust::xxh3::Xxh3;

use super::spec::{By, Related, SpecError};

/// One of a hook's `spec.related`, with the kind that it means.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub kind: Kind,
    by: By,
    within: Within,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Within {
    /// Both have a namespace: only objects of the same one are related.
    Namespace,
    /// One of them has none.
    Everything,
}

/// Where objects meet: a namespace, if it matters, and the name or the values
/// of labels.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    namespace: Option<Arc<str>>,
    values: Box<[Arc<str>]>,
}

impl Relation {
    /// `target` is the scope of the hook's kind.
    pub fn new(related: &Related, kind: Kind, scope: Scope, target: Scope) -> Result<Self, SpecError> {
        let within = match (target, scope) {
            (Scope::Namespaced, Scope::Namespaced) => Within::Namespace,
            (Scope::Cluster, Scope::Namespaced) if matches!(related.by, By::Field(_)) => {
                let message = format!(
                    "spec.related `{}`: the hook's kind has no namespace, so a field of its objects cannot name \
                     one object of {kind}: choose by selector or labelFields",
                    related.name
                );
                return Err(SpecError(message));
            }
            _ => Within::Everything,
        };
        Ok(Self { name: related.name.clone(), kind, by: related.by.clone(), within })
    }

    /// Whether there is one object at most, or a list.
    pub fn is_of_one(&self) -> bool {
        matches!(self.by, By::Field(_))
    }

    /// The place that an object of the hook's kind asks for.
    pub fn asked(&self, object: &Object) -> Option<Place> {
        let value = |field: &str| field_of(object, field).filter(|value| !value.is_empty()).map(Arc::from);
        let values = match &self.by {
            By::Field(field) => [value(field)?].into(),
            By::Labels { fields, .. } => fields.iter().map(|(_, field)| value(field)).collect::<Option<_>>()?,
        };
        Some(self.place(object.namespace(), values))
    }

    /// The place where an object of the related kind is.
    pub fn taken(&self, object: &Object) -> Option<Place> {
        let values = match &self.by {
            By::Field(_) => [Arc::from(object.name())].into(),
            By::Labels { selector, fields } => {
                let labels = object.labels();
                let values = fields.iter().map(|(label, _)| labels.get(label).map(Arc::from)).collect::<Option<_>>()?;
                selector.matches(&labels).then_some(values)?
            }
        };
        Some(self.place(object.namespace(), values))
    }

    fn place(&self, namespace: Option<&str>, values: Box<[Arc<str>]>) -> Place {
        let namespace = namespace.filter(|_| self.within == Within::Namespace).map(Arc::from);
        Place { namespace, values }
    }

    /// The key of the object that a place names, if it is one by name.
    pub fn named(&self, place: &Place) -> Option<ObjectKey> {
        let name = self.is_of_one().then(|| place.values.first()).flatten()?;
        Some(self.kind.key(place.namespace.as_deref(), name))
    }
}

fn field_of<'o>(object: &'o Object, field: &str) -> Option<&'o str> {
    let mut parts = field.split('.');
    let root = object.root().get(parts.next()?)?;
    parts.try_fold(root, |value, part| value.get(part)).and_then(Value::as_str)
}

/// Of which related objects, and in which versions: what an object's answer
/// was made from. Versions are never used twice, so equal digests mean that
/// nothing came, changed or went. In the order of relation and key.
pub fn digest<'k>(related: impl IntoIterator<Item = (usize, &'k ObjectKey, ResourceVersion)>) -> u64 {
    let mut hash = Xxh3::new();
    for (relation, key, version) in related {
        hash.update(&[u8::try_from(relation).unwrap_or(u8::MAX)]);
        for text in [key.namespace.as_deref().unwrap_or_default(), &key.name, &version.to_string()] {
            hash.update(text.as_bytes());
            hash.update(&[0]);
        }
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate_model::LabelSelector;

    use super::super::spec::Target;

    fn relation(by: By, scope: Scope, target: Scope) -> Result<Relation, SpecError> {
        let target_kind = Target { api_version: "example.com/v1".into(), kind: "Page".into() };
        let related = Related { name: "pages".into(), target: target_kind, by };
        Relation::new(&related, Kind::new("example.com/v1", "Page", "pages"), scope, target)
    }

    fn object(namespace: Option<&str>, name: &str, labels: Value, spec: Value) -> Object {
        let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
        let object = json!({"apiVersion": "example.com/v1", "kind": "X", "metadata": metadata, "spec": spec});
        Object::from_value(object).unwrap()
    }

    fn labelled(selector: Value, fields: &[(&str, &str)]) -> By {
        let fields = fields.iter().map(|(label, field)| (label.to_string(), field.to_string())).collect();
        By::Labels { selector: LabelSelector::from_object_form("selector", &selector).unwrap(), fields }
    }

    /// Whether `site`, which asks, and `page` meet.
    fn check(by: By, scopes: (Scope, Scope), site: Object, page: Object, expected: bool) {
        let relation = relation(by.clone(), scopes.0, scopes.1).unwrap();
        let meet = relation.asked(&site).is_some_and(|asked| Some(asked) == relation.taken(&page));
        assert_eq!(
            meet,
            expected,
            "{by:?} {} {}",
            Value::Object(site.root().clone()),
            Value::Object(page.root().clone())
        );
    }

    #[test]
    fn who_meets_whom() {
        use Scope::{Cluster, Namespaced};
        let both = (Namespaced, Namespaced);
        let by_field = || By::Field("spec.page.name".into());
        let site = |namespace, page: Value| object(namespace, "blog", json!({}), json!({"page": {"name": page}}));
        let page = |namespace, labels| object(namespace, "home", labels, json!({}));
        let (web, other) = (Some("web"), Some("other"));
        check(by_field(), both, site(web, json!("home")), page(web, json!({})), true);
        check(by_field(), both, site(web, json!("away")), page(web, json!({})), false);
        check(by_field(), both, site(web, json!("home")), page(other, json!({})), false);
        check(by_field(), both, site(web, json!("")), page(web, json!({})), false);
        check(by_field(), both, site(web, json!(7)), page(web, json!({})), false);
        check(by_field(), (Cluster, Namespaced), site(web, json!("home")), page(None, json!({})), true);

        let by_labels = || labelled(json!({"matchLabels": {"live": "yes"}}), &[("site", "metadata.name")]);
        let live = |site: &str| json!({"live": "yes", "site": site});
        check(by_labels(), both, site(web, json!("")), page(web, live("blog")), true);
        check(by_labels(), both, site(web, json!("")), page(web, live("shop")), false);
        check(by_labels(), both, site(web, json!("")), page(web, json!({"site": "blog"})), false);
        check(by_labels(), both, site(web, json!("")), page(web, json!({"live": "yes"})), false);
        check(by_labels(), both, site(web, json!("")), page(other, live("blog")), false);
        check(by_labels(), (Namespaced, Cluster), site(None, json!("")), page(other, live("blog")), true);
        check(labelled(json!({}), &[]), both, site(web, json!("")), page(web, json!({})), true);
        let by_missing = labelled(json!({}), &[("site", "spec.nothing")]);
        check(by_missing, both, site(web, json!("")), page(web, json!({"site": ""})), false);
    }

    #[test]
    fn a_name_without_a_namespace_names_nothing() {
        let error = relation(By::Field("spec.page".into()), Scope::Namespaced, Scope::Cluster).unwrap_err();
        assert!(error.to_string().contains("choose by selector or labelFields"), "{error}");
    }
}
