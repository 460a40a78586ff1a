//! The desired state of a live object: what somebody wrote, without what the
//! cluster added.

use serde_json::{Map, Value};

use crate::Object;

const METADATA_NOISE: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "ownerReferences",
];
/// Of `argocd.argoproj.io/*` only these two: the others are people's options.
const ANNOTATION_NOISE: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "argocd.argoproj.io/tracking-id",
    "argocd.argoproj.io/installation-id",
];
const ANNOTATION_NOISE_PREFIXES: &[&str] =
    &["deployment.kubernetes.io/", "control-plane.alpha.kubernetes.io/", "autoscaling.alpha.kubernetes.io/"];
/// Filled by the server; `clusterIP` and `clusterIPs` unless they say `None`.
const SERVICE_NOISE: &[&str] = &["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "healthCheckNodePort"];
const CLUSTER_IPS: &[&str] = &["clusterIP", "clusterIPs"];
/// A Service without a cluster IP, as somebody asked for.
const HEADLESS: &str = "None";

/// Idempotent: what is clean stays as it is, to the byte.
pub fn sanitize(mut object: Object) -> Object {
    object.root_mut().remove("status");
    clean_metadata(object.metadata_mut());
    let (api_version, kind) = (object.api_version().to_owned(), object.kind().to_owned());
    if let Some(spec) = object.root_mut().get_mut("spec").and_then(Value::as_object_mut) {
        match (api_version.as_str(), kind.as_str()) {
            ("v1", "Service") => clean_service(spec),
            ("v1", "PersistentVolumeClaim") => drop(spec.remove("volumeName")),
            ("v1", "Pod") => drop(spec.remove("nodeName")),
            _ => {}
        }
    }
    object
}

fn clean_metadata(metadata: &mut Map<String, Value>) {
    METADATA_NOISE.iter().for_each(|field| drop(metadata.remove(*field)));
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let count = annotations.len();
    annotations.retain(|key, _| !is_noise(key));
    // An empty map that was written so stays; one that noise has left goes.
    if count > 0 && annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn is_noise(annotation: &str) -> bool {
    ANNOTATION_NOISE.contains(&annotation)
        || ANNOTATION_NOISE_PREFIXES.iter().any(|prefix| annotation.starts_with(prefix))
}

fn clean_service(spec: &mut Map<String, Value>) {
    SERVICE_NOISE.iter().for_each(|field| drop(spec.remove(*field)));
    for field in CLUSTER_IPS {
        let is_headless = match spec.get(*field) {
            Some(Value::String(ip)) => ip == HEADLESS,
            Some(Value::Array(ips)) => ips.iter().any(|ip| ip == HEADLESS),
            _ => false,
        };
        if !is_headless {
            spec.remove(*field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn clean(yaml: &str) -> Object {
        sanitize(Object::from_value(yaml::parse(yaml).unwrap()).unwrap())
    }

    fn check(yaml: &str, expected: Expect) {
        let object = clean(yaml);
        expected.assert_eq(&yaml::emit(&object.clone().into_value()));
        assert_eq!(sanitize(object.clone()), object, "not idempotent");
    }

    #[test]
    fn system_metadata_goes_and_the_rest_stays() {
        check(
            "{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: |-\n  b}, status: {x: 1}, metadata: {name: a, \
             namespace: b, uid: u, resourceVersion: '1', generation: 2, creationTimestamp: t, deletionTimestamp: t, \
             deletionGracePeriodSeconds: 0, managedFields: [], selfLink: s, ownerReferences: [{name: o}], \
             finalizers: [f], labels: {l: m}, generateName: a-}}"
                .replace("|-\n  b", "b")
                .as_str(),
            expect![[r#"
                apiVersion: v1
                kind: ConfigMap
                metadata:
                  name: a
                  namespace: b
                  labels:
                    l: m
                  finalizers:
                  - f
                  generateName: a-
                data:
                  a: b
                immutable: true
            "#]],
        );
    }

    #[test]
    fn annotations() {
        check(
            "{apiVersion: v1, kind: A, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: x, \
             deployment.kubernetes.io/revision: '1', control-plane.alpha.kubernetes.io/leader: x, \
             autoscaling.alpha.kubernetes.io/conditions: x, argocd.argoproj.io/tracking-id: x, \
             argocd.argoproj.io/installation-id: x, argocd.argoproj.io/sync-wave: '1', \
             kubectl.kubernetes.io/restartedAt: t, mine: ''}}}",
            expect![[r#"
                apiVersion: v1
                kind: A
                metadata:
                  name: a
                  annotations:
                    argocd.argoproj.io/sync-wave: "1"
                    kubectl.kubernetes.io/restartedAt: t
                    mine: ""
            "#]],
        );
        check(
            "{apiVersion: v1, kind: A, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: '1'}}}",
            expect![[r#"
                apiVersion: v1
                kind: A
                metadata:
                  name: a
            "#]],
        );
    }

    #[test]
    fn what_the_server_fills_in() {
        check(
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], \
             ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, internalTrafficPolicy: Cluster, healthCheckNodePort: 3, \
             type: ClusterIP, sessionAffinity: None}}",
            expect![[r#"
                apiVersion: v1
                kind: Service
                metadata:
                  name: a
                spec:
                  sessionAffinity: None
                  type: ClusterIP
            "#]],
        );
        check(
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}",
            expect![[r#"
                apiVersion: v1
                kind: Service
                metadata:
                  name: a
                spec:
                  clusterIP: None
                  clusterIPs:
                  - None
            "#]],
        );
        check(
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v, volumeMode: Block}}",
            expect![[r#"
                apiVersion: v1
                kind: PersistentVolumeClaim
                metadata:
                  name: a
                spec:
                  volumeMode: Block
            "#]],
        );
        check(
            "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n, hostname: h}}",
            expect![[r#"
                apiVersion: v1
                kind: Pod
                metadata:
                  name: a
                spec:
                  hostname: h
            "#]],
        );
        // Another group's Service is somebody else's type.
        check(
            "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: x}}",
            expect![[r#"
                apiVersion: serving.knative.dev/v1
                kind: Service
                metadata:
                  name: a
                spec:
                  clusterIP: x
            "#]],
        );
    }

    #[test]
    fn what_a_whitelist_would_lose() {
        for field in [
            "{kind: StorageClass, provisioner: p, parameters: {a: b}}",
            "{kind: PriorityClass, value: 5, globalDefault: true}",
            "{kind: ClusterRole, rules: null, aggregationRule: {clusterRoleSelectors: []}}",
            "{kind: ServiceAccount, imagePullSecrets: [{name: a}], secrets: []}",
            "{kind: Secret, immutable: true, stringData: {}, type: Opaque}",
            "{kind: Service, spec: {ports: [{nodePort: 30000}], externalTrafficPolicy: Local}}",
        ] {
            let mut value = yaml::parse(field).unwrap();
            value["apiVersion"] = "v1".into();
            value["metadata"] = serde_json::json!({"name": "a"});
            let object = Object::from_value(value).unwrap();
            assert_eq!(sanitize(object.clone()), object, "{field}");
        }
    }

    proptest! {
        #[test]
        fn idempotent(kind in "Service|Pod|PersistentVolumeClaim|X", fields in proptest::collection::vec((0..12usize, "[a-z]{0,3}|None"), 0..12)) {
            let names = ["clusterIP", "clusterIPs", "volumeName", "nodeName", "status", "ipFamilies",
                "uid", "annotations", "labels", "ownerReferences", "argocd.argoproj.io/tracking-id", "x"];
            let mut root = serde_json::json!({"apiVersion": "v1", "kind": kind, "spec": {}, "metadata": {"name": "a", "annotations": {}}});
            for (at, text) in fields {
                let field = names[at];
                root["spec"][field] = text.clone().into();
                root["metadata"]["annotations"][field] = text.clone().into();
                if field != "annotations" {
                    root["metadata"][field] = text.clone().into();
                }
                root[field] = text.into();
            }
            let once = sanitize(Object::from_value(root).unwrap());
            let value = once.clone().into_value();
            prop_assert_eq!(yaml::parse(&yaml::emit(&value)), Ok(value));
            prop_assert_eq!(sanitize(once.clone()), once);
        }
    }
}
