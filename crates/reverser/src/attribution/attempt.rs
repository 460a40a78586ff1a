//! An AdmissionReview, as far as it says who tries what.

use serde_json::Value;
use tidegate_model::{Object, mirror};

use super::content::content_hash;
use super::person::{Person, person};

/// An object, whatever version it is served in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    pub group: String,
    pub resource: String,
    pub namespace: Option<String>,
    pub name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// What the attempt would make of the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The hash holds for objects of this version; in another one the same
    /// state may be spelled differently.
    Object {
        hash: u64,
        version: String,
    },
    /// A call of the `scale` subresource.
    Replicas(i64),
    Nothing,
}

/// Somebody tried something. It may have been refused afterwards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    pub identity: Identity,
    pub uid: String,
    /// The version that the write starts from; `None` for a creation.
    pub base: Option<String>,
    pub operation: Operation,
    pub content: Content,
    pub person: Person,
}

/// What the webhook answers with, and what it learned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Review {
    /// Of the request, to be sent back; empty if it could not be read.
    pub uid: String,
    pub attempt: Option<Attempt>,
}

/// Never fails: what cannot be read is allowed, too, and teaches nothing.
pub fn read_review(review: &Value, cluster: &str) -> Review {
    let request = &review["request"];
    let uid = text(request, "uid").to_owned();
    let attempt = if request["dryRun"] == true { None } else { attempt(request, cluster) };
    Review { uid, attempt }
}

fn attempt(request: &Value, cluster: &str) -> Option<Attempt> {
    let operation = match text(request, "operation") {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        "DELETE" => Operation::Delete,
        _ => return None,
    };
    let content = content(request, operation)?;
    let of = if operation == Operation::Create { &request["object"] } else { &request["oldObject"] };
    let metadata = &of["metadata"];
    let name = [text(request, "name"), text(metadata, "name")].into_iter().find(|name| !name.is_empty())?;
    let base = (operation != Operation::Create).then(|| text(metadata, "resourceVersion").to_owned());
    Some(Attempt {
        identity: Identity {
            group: text(&request["resource"], "group").to_owned(),
            resource: text(&request["resource"], "resource").to_owned(),
            namespace: Some(text(request, "namespace").to_owned()).filter(|namespace| !namespace.is_empty()),
            name: name.to_owned(),
        },
        uid: text(metadata, "uid").to_owned(),
        base: base.filter(|base| !base.is_empty()),
        operation,
        content,
        person: person(&request["userInfo"], cluster)?,
    })
}

/// `None` for subresources that change no desired state.
fn content(request: &Value, operation: Operation) -> Option<Content> {
    match (text(request, "subResource"), operation) {
        ("", Operation::Delete) => Some(Content::Nothing),
        ("", _) => {
            let object = Object::from_value(request["object"].clone())?;
            let version = text(&request["resource"], "version").to_owned();
            Some(Content::Object { hash: content_hash(&mirror::sanitize(object)), version })
        }
        ("scale", Operation::Update) => {
            // Zero is left out of what Go writes.
            Some(Content::Replicas(request["object"]["spec"]["replicas"].as_i64().unwrap_or(0)))
        }
        _ => None,
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
