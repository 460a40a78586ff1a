//! One document: whether its object may enter, and as what.

use std::collections::HashSet;

use serde_json::{Map, Value};
use tidegate_model::kinds::{self, Kind, KindSet, KindVersion, Scope};
use tidegate_model::manifest::{Diagnostic, Document};
use tidegate_model::{FieldError, FieldErrorReason, Object, ObjectKey};

use crate::definitions::Subject;
use crate::places::{is_repository, key_of};
use crate::report::diagnostics;
use crate::{CONTENTS_FINALIZER, Desired, Provenance, Rules, State, authored, rules, warnings};

/// The server keeps objects of 3 MiB; this leaves a third of it to the status.
pub const DESIRED_BYTES_MAX: usize = 2 << 20;

pub(crate) struct Judge<'j, S> {
    pub kinds: &'j KindSet,
    pub state: &'j S,
    pub rules: &'j Rules,
    /// The paths of the change.
    pub touched: &'j HashSet<&'j str>,
}

/// An object that may enter as far as it alone is concerned.
pub(crate) struct Judged<'d> {
    pub key: ObjectKey,
    /// Without system metadata and status, in the version that is stored.
    pub desired: Desired,
    /// What was probably meant otherwise.
    pub warnings: Vec<FieldError>,
    /// Where it is written; what was written there is `desired` now.
    pub document: Document<'d>,
}

/// One that may not, with its key if it has come to one: what a file still
/// speaks of is not removed.
pub(crate) struct Refused {
    pub key: Option<ObjectKey>,
    pub diagnostics: Vec<Diagnostic>,
    /// If it is a definition: of what.
    pub subject: Option<Box<Subject>>,
}

pub(crate) type Judgement<'d> = Result<Judged<'d>, Refused>;

impl<S: State> Judge<'_, S> {
    /// The outer error is a failure to read the state.
    pub fn judge<'d>(&self, document: Document<'d>) -> Result<Judgement<'d>, S::Error> {
        let authored = &document.object;
        let Some((kind, version)) = self.kinds.by_gvk(authored.api_version(), authored.kind()) else {
            return Ok(Err(unknown_kind(self.kinds, &document)));
        };
        let key = key_of(kind, &document, self.rules);
        let current = self.state.current(&key)?;
        let mut errors = self.permission(kind, &key);
        errors.extend(self.grants(&key, &document.object));
        errors.extend(self.ownership(&key, current.as_deref()));
        if !errors.is_empty() {
            return Ok(Err(refused(Some(key), &document, &errors)));
        }
        Ok(take_in(kind, version, key, document, current.as_deref()))
    }

    fn permission(&self, kind: &Kind, key: &ObjectKey) -> Vec<FieldError> {
        let forbid = |lacking: &'static str| {
            let (field, what, remedy) = match (lacking, &key.namespace) {
                (rules::KINDS, _) => ("kind", kind.kind.to_string(), "add it to its"),
                (rules::NAMESPACES, Some(name)) => {
                    ("metadata.namespace", format!("objects in {name}"), "add it to its")
                }
                _ => ("kind", "cluster-scoped objects".to_owned(), "set its"),
            };
            let message = format!("repository {} may not define {what}: {remedy} {lacking}", self.rules.repository);
            FieldError::new(field, FieldErrorReason::Forbidden, message)
        };
        self.rules.lacking(kind, key).into_iter().map(forbid).collect()
    }

    /// A repository that defines another gives it nothing that it has not.
    fn grants(&self, key: &ObjectKey, object: &Object) -> Vec<FieldError> {
        let Some(granted) = granted(key, object) else { return Vec::new() };
        let message =
            format!("more than repository {} may do itself: let one define it that may", self.rules.repository);
        let forbid = |field| FieldError::new(field, FieldErrorReason::Forbidden, message.clone());
        self.rules.exceeded_by(&granted).into_iter().map(forbid).collect()
    }

    /// An object belongs to one file of one repository. What nobody defined
    /// yet, such as a namespace of the first start, may be adopted.
    fn ownership(&self, key: &ObjectKey, current: Option<&Object>) -> Option<FieldError> {
        let current = current?;
        let forbid = |message: String| Some(FieldError::new("metadata.name", FieldErrorReason::Forbidden, message));
        if current.deletion_timestamp().is_some() {
            let finalizers: Vec<_> = current.finalizers().collect();
            let waits = finalizers.join(", ");
            let is_namespace = finalizers.contains(&CONTENTS_FINALIZER);
            let remedy = if is_namespace { "remove the objects in it, and " } else { "" };
            return forbid(format!("{key} is being deleted and waits for {waits}: {remedy}push again when it is gone"));
        }
        match Provenance::of(current) {
            Some(Provenance { repository, path }) if repository != &*self.rules.repository => forbid(format!(
                "{key} is already defined by repository {repository} at {path}: an object belongs to one"
            )),
            Some(Provenance { path, .. }) if !self.touched.contains(path) => {
                forbid(format!("{key} is already defined at {path}: remove one of the two"))
            }
            _ => None,
        }
    }
}

/// What a `Repository` may do once it is in force; `None` for other objects.
pub(crate) fn granted(key: &ObjectKey, object: &Object) -> Option<Rules> {
    if !is_repository(key) {
        return None;
    }
    let mut object = object.clone();
    // Where its file names none.
    object.metadata_mut().insert("namespace".into(), key.namespace.as_deref().unwrap_or_default().into());
    Some(Rules::of_repository(&object))
}

/// Whether the document fits its kind, whoever may define it.
pub(crate) fn take_in<'d>(
    kind: &Kind,
    version: &KindVersion,
    key: ObjectKey,
    mut document: Document<'d>,
    current: Option<&Object>,
) -> Judgement<'d> {
    match desired(kind, version, &key, &document, current) {
        Ok((object, desired)) => {
            let warnings = warnings::of(kind, version, &document.object, &object);
            drop(std::mem::take(document.object.root_mut()));
            document.body = document.body.map(|_| String::new());
            Ok(Judged { key, desired, warnings, document })
        }
        Err(errors) => Err(refused(Some(key), &document, &errors)),
    }
}

/// For a kind that nobody has defined.
const DEFINE: &str = "push its CustomResourceDefinition first, or in the same change";

pub(crate) fn unknown_kind(known: &KindSet, document: &Document<'_>) -> Refused {
    let message = kinds::unknown_kind(known, &document.object.gvk(), DEFINE);
    refused(None, document, &[FieldError::new("kind", FieldErrorReason::NotFound, message)])
}

fn refused(key: Option<ObjectKey>, document: &Document<'_>, errors: &[FieldError]) -> Refused {
    Refused { key, diagnostics: diagnostics(document, errors), subject: Subject::of(document).map(Box::new) }
}

fn desired(
    kind: &Kind,
    version: &KindVersion,
    key: &ObjectKey,
    document: &Document<'_>,
    current: Option<&Object>,
) -> Result<(Object, Desired), Vec<FieldError>> {
    let mut object = document.object.clone();
    let mut errors = authored::check(&mut object);
    errors.extend(place_body(version, document, &mut object));
    if !errors.is_empty() {
        return Err(errors);
    }
    if let (Scope::Namespaced, Some(namespace)) = (kind.scope, &key.namespace) {
        object.metadata_mut().entry("namespace").or_insert_with(|| namespace.to_string().into());
    }
    // Neither side shows a status: a rule about a transition must not see it vanish.
    let old = current.map(|current| without_status(current.clone()));
    let errors = kind.admit(version, &mut object, old.as_ref());
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut object = without_status(object);
    object.root_mut().insert("apiVersion".into(), kind.api_version(kind.storage_version()).into());
    let desired = Desired::new(&object);
    match desired.bytes() {
        bytes if bytes > DESIRED_BYTES_MAX => {
            let message = format!("{bytes} bytes of JSON are more than the {DESIRED_BYTES_MAX} allowed");
            Err(vec![FieldError::new("", FieldErrorReason::TooLong, message)])
        }
        _ => Ok((object, desired)),
    }
}

/// The text below the front matter is `spec.body`.
fn place_body(version: &KindVersion, document: &Document<'_>, object: &mut Object) -> Option<FieldError> {
    let body = document.body.as_ref()?;
    let refuse = |message: String| Some(FieldError::new("spec.body", FieldErrorReason::Forbidden, message));
    if !version.has_body() {
        let kind = object.kind();
        return refuse(format!("{kind} has no body: remove the text below the front matter"));
    }
    let spec = object.root_mut().entry("spec").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(spec) = spec else { return None };
    if spec.contains_key("body") {
        return refuse("is in the front matter and below it: keep one of the two".into());
    }
    spec.insert("body".into(), body.as_str().into());
    None
}

fn without_status(mut object: Object) -> Object {
    object.root_mut().remove("status");
    object
}
