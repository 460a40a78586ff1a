//! Definitions: which are refused, which may stand beside or replace another.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_model::kinds::{Kind, KindSet, Scope};
use tidegate_model::{FieldError, GroupResource, Object};

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [version("v1", true)],
        },
    })
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}},
        "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}],
        "selectableFields": [{"jsonPath": ".spec.color"}],
    })
}

/// Values and where they go, as JSON pointers.
type Changes<'a> = &'a [(&'a str, Value)];

fn changed(changes: Changes) -> Value {
    let mut crd = definition();
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
        let parent = crd.pointer_mut(parent).expect("a place");
        match parent {
            Value::Array(items) => items[field.parse::<usize>().expect("an index")] = value.clone(),
            other => other[field] = value.clone(),
        }
    }
    crd
}

fn read(crd: Value) -> Result<Kind, Vec<String>> {
    Kind::from_crd(&Object::from_value(crd).expect("an object")).map_err(lines)
}

fn lines(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn kind(changes: Changes) -> Arc<Kind> {
    Arc::new(read(changed(changes)).expect("a valid definition"))
}

#[test]
fn a_definition_becomes_a_kind() {
    let kind = kind(&[]);
    assert_eq!(kind.resource, GroupResource::new("example.com", "widgets"));
    assert_eq!((&*kind.kind, &*kind.list_kind, &*kind.singular), ("Widget", "WidgetList", "widget"));
    assert_eq!((kind.scope, kind.storage), (Scope::Namespaced, 0));
    let version = kind.storage_version();
    assert!(version.has_status && version.served && !version.deprecated && !version.has_body());
    assert_eq!(&*version.columns[0].json_path, ".spec.color");
    assert_eq!(&*version.selectable_fields[0], ".spec.color");
}

#[test]
fn what_kube_apiserver_refuses() {
    let table: &[(Changes, &[&str])] = &[
        (
            &[("/metadata/name", json!("gadgets.example.com"))],
            &[
                "metadata.name: Invalid value: \"gadgets.example.com\": must be spec.names.plural+\".\"+spec.group: \"widgets.example.com\"",
            ],
        ),
        (
            &[("/spec/group", json!("example")), ("/metadata/name", json!("widgets.example"))],
            &["spec.group: Invalid value: \"example\": should be a domain with at least one dot"],
        ),
        (
            &[("/spec/group", json!("own.k8s.io")), ("/metadata/name", json!("widgets.own.k8s.io"))],
            &[
                "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have the annotation api-approved.kubernetes.io; use a group of your own domain",
            ],
        ),
        (
            &[("/spec/scope", json!("Galaxy"))],
            &["spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\""],
        ),
        (
            &[("/spec/names/singular", json!("Widget"))],
            &[
                "spec.names.singular: Invalid value: \"Widget\": must be a DNS-1035 label: lower case letters, digits and '-', starting with a letter, at most 63",
            ],
        ),
        (
            &[("/spec/names/listKind", json!("Widget"))],
            &["spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"],
        ),
        (
            &[("/spec/versions", json!([]))],
            &[
                "spec.versions: Required value: must have at least one version",
                "spec.versions: Invalid value: must have exactly one version marked as storage version",
            ],
        ),
        (
            &[("/spec/versions", json!([version("v1", true), version("v2", true)]))],
            &["spec.versions: Invalid value: must have exactly one version marked as storage version"],
        ),
        (
            &[("/spec/versions", json!([version("v1", true), version("v1", false)]))],
            &["spec.versions[1].name: Duplicate value: \"v1\""],
        ),
        (
            &[("/spec/versions/0/schema", json!(null))],
            &["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
        ),
        (
            &[("/spec/conversion", json!({"strategy": "Webhook"}))],
            &[
                "spec.conversion.strategy: Unsupported value: \"Webhook\": supported values: \"None\"; versions that need a webhook to convert cannot be served: keep one version, or versions that differ in schema alone",
            ],
        ),
        (
            &[("/spec/preserveUnknownFields", json!(true))],
            &[
                "spec.preserveUnknownFields: Invalid value: true: must be false; set x-kubernetes-preserve-unknown-fields: true in the schema",
            ],
        ),
        (
            &[("/spec/versions/0/additionalPrinterColumns/0/type", json!("text"))],
            &[
                "spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of string,integer,number,boolean,date",
            ],
        ),
        (
            &[("/spec/versions/0/selectableFields/0/jsonPath", json!(".spec.shape"))],
            &[
                "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec.shape\": must be the path of a string, integer or boolean of the schema, such as .spec.color",
            ],
        ),
    ];
    for (changes, wrong) in table {
        let errors = read(changed(changes)).expect_err("an invalid definition");
        assert_eq!(errors, *wrong, "{changes:?}");
    }
    assert_eq!(
        read(json!({"apiVersion": "a", "kind": "b", "metadata": {"name": "c"}})).unwrap_err(),
        ["spec: Required value"]
    );
}

#[test]
fn names_are_unique_in_a_group() {
    let set = KindSet::builtin().with(kind(&[])).expect("no conflict");
    let gadget = |changes: Changes| {
        let mut all = vec![
            ("/metadata/name", json!("gadgets.example.com")),
            ("/spec/names", json!({"kind": "Gadget", "plural": "gadgets"})),
        ];
        all.extend_from_slice(changes);
        kind(&all)
    };
    assert!(set.with(gadget(&[])).is_ok());
    assert!(set.with(kind(&[])).is_ok(), "a definition replaces itself");
    let clash = |changes: Changes, wrong: &[&str]| {
        assert_eq!(lines(set.with(gadget(changes)).expect_err("a conflict")), wrong, "{changes:?}");
    };
    clash(
        &[("/spec/names/kind", json!("Widget")), ("/spec/names/singular", json!("gadget"))],
        &[
            "spec.names.kind: Invalid value: \"Widget\" is already in use by widgets.example.com; choose another",
            "spec.names.listKind: Invalid value: \"WidgetList\" is already in use by widgets.example.com; choose another",
        ],
    );
    clash(
        &[("/spec/names/shortNames", json!(["wd"]))],
        &["spec.names.shortNames: Invalid value: \"wd\" is already in use by widgets.example.com; choose another"],
    );
    clash(
        &[("/spec/names/singular", json!("widgets"))],
        &["spec.names.singular: Invalid value: \"widgets\" is already in use by widgets.example.com; choose another"],
    );
    let elsewhere = kind(&[("/spec/group", json!("example.org")), ("/metadata/name", json!("widgets.example.org"))]);
    assert!(set.with(elsewhere).is_ok(), "another group is another room");
}

#[test]
fn sets_change_as_a_whole() {
    let builtin = KindSet::builtin();
    let with = builtin.with(kind(&[])).expect("no conflict");
    assert!(builtin.by_gvk("example.com/v1", "Widget").is_none());
    assert!(with.by_gvk("example.com/v1", "Widget").is_some());
    assert!(with.by_gvk("example.com/v2", "Widget").is_none());
    assert!(with.by_gvk("v1", "Widget").is_none());
    let resource = GroupResource::new("example.com", "widgets");
    let without = with.without(&resource);
    assert!(without.by_resource(&resource).is_none() && without.by_gvk("example.com/v1", "Widget").is_none());
    assert_eq!(without.len(), builtin.len());
    let lease = kind(&[
        ("/spec/group", json!("coordination.k8s.io")),
        ("/spec/names", json!({"kind": "Lease", "plural": "leases"})),
        (
            "/metadata",
            json!({"name": "leases.coordination.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved"}}),
        ),
    ]);
    assert_eq!(
        lines(builtin.with(lease).expect_err("built in")),
        ["metadata.name: Forbidden: leases.coordination.k8s.io is built in and cannot be redefined"]
    );
}

#[test]
fn a_version_that_is_not_served_is_not_found() {
    let set = KindSet::builtin().with(kind(&[("/spec/versions/0/served", json!(false))])).expect("no conflict");
    assert!(set.by_gvk("example.com/v1", "Widget").is_none());
    assert!(set.by_resource(&GroupResource::new("example.com", "widgets")).is_some());
}

#[test]
fn a_replacement_keeps_stored_objects_readable() {
    let check = |changes: Changes, wrong: &[&str]| {
        assert_eq!(lines(kind(&[]).check_replacement(&kind(changes))), wrong, "{changes:?}");
    };
    check(&[], &[]);
    check(&[("/spec/versions", json!([version("v1", false), version("v2", true)]))], &[]);
    check(
        &[("/spec/versions", json!([version("v2", true)]))],
        &["spec.versions: Invalid value: must keep version \"v1\", in which objects are stored; it need not be served"],
    );
    check(
        &[("/spec/scope", json!("Cluster"))],
        &[
            "spec.scope: Invalid value: field is immutable: delete the objects and the definition first; objects are stored as Namespaced",
        ],
    );
    check(
        &[("/spec/names/kind", json!("Gizmo"))],
        &[
            "spec.names.kind: Invalid value: field is immutable: delete the objects and the definition first; objects are stored as Widget",
        ],
    );
}

#[test]
fn metadata_is_checked_for_every_kind() {
    let kind = kind(&[]);
    let check = |metadata: Value, wrong: &[&str]| {
        let value = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata});
        let mut object = Object::from_value(value).expect("an object");
        assert_eq!(lines(kind.admit(kind.storage_version(), &mut object, None)), wrong, "{metadata}");
    };
    check(
        json!({"name": "a", "namespace": "b", "labels": {"example.com/x": "1"}, "annotations": {"Any.Case/Key": "text \n"}}),
        &[],
    );
    check(json!({"name": "a"}), &["metadata.namespace: Required value"]);
    check(json!({"name": "", "namespace": "b"}), &["metadata.name: Required value: name is required"]);
    check(
        json!({"name": "a", "namespace": "b", "labels": {"x": 1}}),
        &["metadata.labels[x]: Invalid value: 1: must be of type string: quote it"],
    );
    check(
        json!({"name": "a", "namespace": "b", "labels": []}),
        &["metadata.labels: Invalid value: must be of type object"],
    );
    check(
        json!({"name": "a", "namespace": "b", "finalizers": ["a b"]}),
        &["metadata.finalizers[0]: Invalid value: \"a b\": must be a name such as 'example.com/cleanup'"],
    );
    check(
        json!({"name": "a", "namespace": "b", "annotations": {"big": "x".repeat(256 << 10)}}),
        &["metadata.annotations: Too long: may not be more than 262144 bytes in total"],
    );
    let mut object = Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "b", "own": 1, "labels": null}})).expect("an object");
    assert!(kind.admit(kind.storage_version(), &mut object, None).is_empty());
    assert_eq!(Value::Object(object.metadata().clone()), json!({"name": "a", "namespace": "b"}));
}
