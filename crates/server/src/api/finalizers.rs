//! Finalizers: a controller's way to see a deletion through.

use serde_json::json;
use tidegate_admission::CONTENTS_FINALIZER;
use tidegate_model::kinds::Scope;
use tidegate_model::{FieldError, FieldErrorReason, Object, ObjectKey};
use tidegate_store::Op;

use super::error::{ApiError, Code};
use super::fence::Fence;
use super::kind_ref::KindRef;
use super::status::precondition;
use super::{Api, Item};
use crate::identity::{Attributes, SUBRESOURCE_FINALIZERS, Session, Verb};

/// Finalizers of one object.
const FINALIZERS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct FinalizersWrite {
    pub namespace: Option<String>,
    pub name: String,
    pub resource_version: Option<String>,
    pub add: Vec<String>,
    pub remove: Vec<String>,
}

impl Api {
    /// `None` when removing the last finalizer of a terminating object
    /// removed it.
    pub async fn update_finalizers(
        &self,
        session: &Session,
        kind: &KindRef,
        write: FinalizersWrite,
    ) -> Result<Option<Item>, ApiError> {
        self.update_finalizers_fenced(session, kind, write, None).await
    }

    /// Refused if the lease behind `fence` is not in force when it commits.
    pub async fn update_finalizers_fenced(
        &self,
        session: &Session,
        kind: &KindRef,
        write: FinalizersWrite,
        fence: Option<&Fence>,
    ) -> Result<Option<Item>, ApiError> {
        let key = kind.key(write.namespace.as_deref(), &write.name)?;
        let attributes = Attributes::new(Verb::Patch, &key.resource).subresource(SUBRESOURCE_FINALIZERS);
        self.authorize(session, &attributes.namespace(write.namespace.as_deref()).name(&write.name))?;
        let expected = precondition(write.resource_version.as_deref())?;
        let (stored, object) = self.read_expected(&key, expected)?;
        let before: Vec<&str> = object.finalizers().collect();
        let after = next_finalizers(&object, &before, &write)
            .map_err(|errors| ApiError::invalid("the change of finalizers", &errors))?;
        if after == before {
            return Ok(Some(Item::serve(kind, stored)));
        }
        if before.contains(&CONTENTS_FINALIZER) && !after.contains(&CONTENTS_FINALIZER) {
            self.check_empty(&key)?;
        }
        if after.is_empty() && object.deletion_timestamp().is_some() {
            self.commit_one(&key, expected, Op::Delete, fence).await?;
            return Ok(None);
        }
        let mut next = object.clone();
        set_finalizers(&mut next, &after);
        self.put(kind, &key, expected, &next, fence).await.map(Some)
    }
}

impl Api {
    /// A namespace goes when it is empty and not before, whoever asks. Nothing
    /// new comes into one that is being deleted, so what holds here holds when
    /// it is committed.
    fn check_empty(&self, namespace: &ObjectKey) -> Result<(), ApiError> {
        let view = self.0.store.view();
        let mut left = Vec::new();
        for kind in self.kinds().set.iter().filter(|kind| kind.scope == Scope::Namespaced) {
            match view.count(&kind.resource, Some(&namespace.name))? {
                0 => {}
                count => left.push(format!("{count} {}", kind.resource)),
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        // The namespace's own status shows it, so it speaks of nothing else.
        let message = format!("it still has {}: remove their files, and it goes by itself", left.join(", "));
        let cause = json!({"field": "metadata.finalizers", "reason": "Forbidden", "message": message});
        Err(ApiError::new(Code::Invalid, message).with("causes", vec![cause]))
    }
}

fn set_finalizers(object: &mut Object, finalizers: &[&str]) {
    if finalizers.is_empty() {
        object.metadata_mut().remove("finalizers");
    } else {
        object.metadata_mut().insert("finalizers".into(), json!(finalizers));
    }
}

fn next_finalizers<'a>(
    object: &Object,
    before: &[&'a str],
    write: &'a FinalizersWrite,
) -> Result<Vec<&'a str>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut after: Vec<&str> =
        before.iter().copied().filter(|name| !write.remove.iter().any(|gone| gone == name)).collect();
    for (at, name) in write.add.iter().enumerate().filter(|(_, name)| !before.contains(&name.as_str())) {
        let path = format!("input.add[{at}]");
        if object.deletion_timestamp().is_some() {
            let message = "the object is being deleted: no finalizer can be added any more";
            errors.push(FieldError::new(path, FieldErrorReason::Forbidden, message));
        } else if !is_qualified(name) {
            errors.push(FieldError::invalid(
                path,
                format!("`{name}` is not a finalizer: write it as `example.com/what-waits`"),
            ));
        } else if !after.contains(&name.as_str()) {
            after.push(name);
        }
    }
    if after.len() > FINALIZERS_MAX {
        errors.push(FieldError::new(
            "input.add",
            FieldErrorReason::TooMany,
            format!("an object has at most {FINALIZERS_MAX} finalizers"),
        ));
    }
    if errors.is_empty() { Ok(after) } else { Err(errors) }
}

/// `domain/name`, as Kubernetes wants it of everybody but itself.
fn is_qualified(name: &str) -> bool {
    let is_word = |text: &str| {
        let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        text.len() <= 253
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            && ends_well(text.chars().next())
            && ends_well(text.chars().last())
    };
    name.split_once('/').is_some_and(|(domain, rest)| is_word(domain) && is_word(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn check(deleting: bool, before: &[&str], add: &[&str], remove: &[&str], expected: Result<&[&str], &str>) {
        let mut metadata = json!({"name": "a", "finalizers": before});
        if deleting {
            metadata["deletionTimestamp"] = Value::from("2026-01-01T00:00:00Z");
        }
        let object =
            Object::from_value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).unwrap();
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let write = FinalizersWrite {
            namespace: None,
            name: "a".into(),
            resource_version: None,
            add: owned(add),
            remove: owned(remove),
        };
        match (next_finalizers(&object, before, &write), expected) {
            (Ok(after), Ok(expected)) => assert_eq!(after, expected),
            (Err(errors), Err(expected)) => assert!(errors[0].message.contains(expected), "{errors:?}"),
            (got, _) => panic!("{got:?}"),
        }
    }

    #[test]
    fn finalizers_are_added_and_removed() {
        check(false, &[], &["x.io/a"], &[], Ok(&["x.io/a"]));
        check(false, &["x.io/a"], &["x.io/a", "x.io/b"], &[], Ok(&["x.io/a", "x.io/b"]));
        check(false, &["x.io/a", "x.io/b"], &[], &["x.io/a", "x.io/none"], Ok(&["x.io/b"]));
        check(true, &["x.io/a"], &[], &["x.io/a"], Ok(&[]));
        check(true, &["x.io/a"], &["x.io/a"], &[], Ok(&["x.io/a"]));
        check(true, &["x.io/a"], &["x.io/b"], &[], Err("being deleted"));
        check(false, &[], &["nodomain"], &[], Err("is not a finalizer"));
        check(false, &[], &["x.io/-"], &[], Err("is not a finalizer"));
    }
}
