//! Types that come and go.

use serde_json::json;
use tidegate_testkit::cluster::{ADMIN, ALICE};
use tidegate_testkit::place::wait;

use crate::rig::{ALONE, Rig, shared};

#[test]
fn a_definition_after_the_rule() {
    let place = shared().place("types");
    let group = format!("{}.example.com", place.namespace);
    place.rule("widgets", "live", json!({"resources": ["widgets"], "apiGroups": [group]}));
    place.wait_reason("watchrule", "widgets", "WaitingForTypes");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let name = format!("widgets.{group}");
    place.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    }));
    place.wait_reason("watchrule", "widgets", "Watching");
    place.wait_reason("gitdestination", "live", "Mirroring");
    let widget = |size: u32| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Widget",
            "metadata": {"name": "w", "namespace": place.namespace, "labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"size": size},
        })
    };
    place.apply_as(ALICE, &widget(1));
    let path = format!("live/{group}/v1/widgets/{}/w.yaml", place.namespace);
    let text = place.wait_file(&path, |text| text.contains("size: 1"));
    assert!(text.contains("a: b") && text.contains("c: d"), "{text}");
    place.kubectl_as(
        ALICE,
        &["patch", "widget", "w", "--subresource=status", "--type=merge", "-p", r#"{"status":{"ok":true}}"#],
    );
    place.apply_as(ALICE, &widget(2));
    let text = place.wait_file(&path, |text| text.contains("size: 2"));
    assert!(!text.contains("status"), "{text}");
    assert_eq!(place.commits(&path).len(), 2, "a status makes no commit");
    place.kubectl_as("admin", &["delete", "crd", &name]);
    place.wait_no_file(&path);
}

#[test]
fn cluster_scoped_types() {
    let place = shared().place("scoped");
    let rule = json!({"scope": "Cluster", "apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"]});
    let to = json!({"name": "live", "namespace": place.namespace});
    place.configure("ClusterWatchRule", &place.namespace, json!({"destinationRef": to, "rules": [rule]}));
    place.wait_reason("clusterwatchrule", &place.namespace, "Watching");
    let name = format!("{}-high", place.namespace);
    place.apply_as(
        ALICE,
        &json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7,
        }),
    );
    let path = format!("live/scheduling.k8s.io/v1/priorityclasses/{name}.yaml");
    let text = place.wait_file(&path, |_| true);
    assert!(text.contains("value: 7"), "{text}");
    place.kubectl_as("admin", &["delete", "clusterwatchrule", &place.namespace]);
    place.wait_no_file(&path);
}

/// An aggregated API whose server is away is not gone: its files stay until
/// the API itself goes, also if nobody has seen it answer.
#[test]
fn an_api_that_does_not_answer() {
    let mut rig = Rig::start(ALONE);
    let (at, path) = {
        let place = rig.place("away");
        let service = json!({"name": "nothing", "namespace": "default", "port": 443});
        let spec = json!({"group": "away.example.com", "version": "v1", "service": service, "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 100, "versionPriority": 100});
        place.apply(&json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.away.example.com"}, "spec": spec}));
        wait("it does not answer", || {
            let object = place.get("apiservice", "v1.away.example.com")?;
            (object.pointer("/status/conditions/0/status")? == "False").then_some(())
        });
        let namespace = &place.namespace;
        let path = format!("live/away.example.com/v1/things/{namespace}/x.yaml");
        let text =
            format!("apiVersion: away.example.com/v1\nkind: Thing\nmetadata:\n  name: x\n  namespace: {namespace}\n");
        place.foreign_commit(&[(path.clone(), text)]);
        ((place.namespace.clone(), place.repository.clone()), path)
    };
    drop(rig.operator.take());
    rig.start_operator(ALONE);
    let place = rig.place_again(&at);
    place.apply(&place.config_map("a", "1"));
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_file(&place.config_map_path("a"), |_| true);
    place.wait_reason("gitdestination", "live", "Mirroring");
    assert!(place.file(&path).is_some(), "nobody knows that it is gone");
    place.kubectl_as(ADMIN, &["delete", "apiservice", "v1.away.example.com"]);
    place.wait_no_file(&path);
}
