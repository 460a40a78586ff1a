//! What a write keeps, and what it raises.

use chrono::TimeDelta;
use serde_json::json;

use super::*;
use crate::{SOURCE_AUTHOR, SOURCE_COMMIT};

fn object(value: Value) -> Object {
    let mut root = json!({"apiVersion": "c/v1", "kind": "P", "metadata": {"name": "a", "namespace": "n"}});
    tidegate_model::merge_patch(&mut root, &value);
    Object::from_value(root).unwrap()
}

fn stamp<'s>(path: &'s str, commit: &'s str) -> Stamp<'s> {
    let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(7);
    let source = Provenance { repository: "n/r", path };
    Stamp { now, new_uid: "uid-1", source, change: LastChange { commit: Some(commit), author: Some("Ada <a@b>") } }
}

/// As it is stored, with what others have written.
fn stored() -> Object {
    object(json!({
        "metadata": {
            "uid": "uid-0", "creationTimestamp": "1970-01-01T00:00:01Z", "generation": 4,
            "resourceVersion": "1848736000000000", "finalizers": ["f"], "labels": {"l": "1"},
            "annotations": {"a": "1", SOURCE_COMMIT: "c0", SOURCE_AUTHOR: "Bob <b@c>", "tidegate.dev/source-path": "a.yaml", "tidegate.dev/source-repository": "n/r"},
        },
        "spec": {"x": 1},
        "status": {"ready": true},
    }))
}

fn desired(change: Value) -> Desired {
    let mut value = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}, "spec": {"x": 1}});
    tidegate_model::merge_patch(&mut value, &change);
    Desired::new(&object(value))
}

fn update(change: Value, path: &str) -> Object {
    match next_object(&desired(change), Some(&stored()), &stamp(path, "c1")) {
        Outcome::Update(next) => next,
        other => panic!("not an update: {other:?}"),
    }
}

#[test]
fn a_new_object_gets_its_identity() {
    let Outcome::Create(next) = next_object(&desired(json!({})), None, &stamp("a.yaml", "c1")) else { panic!() };
    let expected = json!({"metadata": {
        "uid": "uid-1", "creationTimestamp": "1970-01-01T00:00:07Z", "generation": 1, "labels": {"l": "1"},
        "annotations": {"a": "1", SOURCE_COMMIT: "c1", SOURCE_AUTHOR: "Ada <a@b>", "tidegate.dev/source-path": "a.yaml", "tidegate.dev/source-repository": "n/r"},
    }, "spec": {"x": 1}});
    assert_eq!(next, object(expected));
}

#[test]
fn the_same_again_is_no_change_whatever_the_commit() {
    assert_eq!(next_object(&desired(json!({})), Some(&stored()), &stamp("a.yaml", "c1")), Outcome::Unchanged);
}

#[test]
fn spec_raises_the_generation_and_keeps_what_others_wrote() {
    let next = update(json!({"spec": {"x": 2}}), "a.yaml");
    let mut expected = stored();
    expected.root_mut()["spec"]["x"] = json!(2);
    expected.metadata_mut()["generation"] = json!(5);
    expected.metadata_mut()["annotations"][SOURCE_COMMIT] = json!("c1");
    expected.metadata_mut()["annotations"][SOURCE_AUTHOR] = json!("Ada <a@b>");
    assert_eq!(next, expected);
}

#[test]
fn any_other_authored_field_raises_the_generation() {
    assert_eq!(update(json!({"data": {"k": "v"}}), "a.yaml").generation(), 5);
    assert_eq!(update(json!({"spec": null}), "a.yaml").generation(), 5);
}

#[test]
fn metadata_leaves_the_generation() {
    let next = update(json!({"metadata": {"labels": {"l": "2"}}}), "a.yaml");
    assert_eq!((next.generation(), next.labels().get("l")), (4, Some("2")));
    let next = update(json!({"metadata": {"annotations": {"a": null}}}), "a.yaml");
    assert_eq!((next.generation(), next.metadata()["annotations"].get("a")), (4, None));
    let next = update(json!({}), "moved/a.yaml");
    assert_eq!((next.generation(), next.uid(), next.status()), (4, Some("uid-0"), stored().status()));
    assert_eq!(Provenance::of(&next), Some(Provenance { repository: "n/r", path: "moved/a.yaml" }));
    let mut other_version = desired(json!({})).object();
    other_version.root_mut().insert("apiVersion".into(), "c/v2".into());
    let Outcome::Update(next) = next_object(&Desired::new(&other_version), Some(&stored()), &stamp("a.yaml", "c1"))
    else {
        panic!()
    };
    assert_eq!(next.generation(), 4);
}

#[test]
fn what_is_being_deleted_is_not_wanted_again() {
    let mut current = stored();
    current.metadata_mut().insert("deletionTimestamp".into(), json!("1970-01-01T00:00:05Z"));
    assert_eq!(next_object(&desired(json!({})), Some(&current), &stamp("a.yaml", "c1")), Outcome::Terminating);
}

#[test]
fn finalizers_hold_a_deletion() {
    let now = stamp("", "").now;
    let Deletion::Stamp(stamped) = delete_object(&stored(), now) else { panic!() };
    assert_eq!((stamped.deletion_timestamp(), stamped.generation()), (Some("1970-01-01T00:00:07Z"), 5));
    assert_eq!((stamped.status(), stamped.spec()), (stored().status(), stored().spec()));
    assert_eq!(delete_object(&stamped, now), Deletion::Waiting);
    let mut free = stamped;
    free.metadata_mut().remove("finalizers");
    assert_eq!(delete_object(&free, now), Deletion::Remove);
}
