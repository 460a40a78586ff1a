//! Every type of the preset, there and back: what is in Git, applied, is the
//! object again.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_model::mirror::ResourceKey;
use tidegate_model::{Object, yaml};
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB};
use tidegate_testkit::place::Place;

use crate::rig::Rig;
use crate::running::Flags;

const FLAGS: Flags = Flags { is_alone: true, has_controllers: true, lists_pages: false };
/// How many types the preset has.
const TYPES: usize = 20;
/// Kinds and their plurals.
const PLURALS: [(&str, &str); TYPES] = [
    ("ConfigMap", "configmaps"),
    ("Secret", "secrets"),
    ("ServiceAccount", "serviceaccounts"),
    ("LimitRange", "limitranges"),
    ("ResourceQuota", "resourcequotas"),
    ("Service", "services"),
    ("Deployment", "deployments"),
    ("StatefulSet", "statefulsets"),
    ("DaemonSet", "daemonsets"),
    ("Ingress", "ingresses"),
    ("NetworkPolicy", "networkpolicies"),
    ("PodDisruptionBudget", "poddisruptionbudgets"),
    ("Role", "roles"),
    ("RoleBinding", "rolebindings"),
    ("ClusterRole", "clusterroles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("PriorityClass", "priorityclasses"),
    ("StorageClass", "storageclasses"),
    ("CustomResourceDefinition", "customresourcedefinitions"),
    ("APIService", "apiservices"),
];

/// One object: where it is in Git, and how kubectl calls it.
struct Subject {
    path: String,
    plural: String,
    name: String,
}

fn subjects(manifests: &str) -> Vec<Subject> {
    let documents = yaml::parse_documents(manifests).unwrap();
    let one = |value: Value| {
        let object = Object::from_value(value).unwrap();
        let plural = PLURALS.iter().find(|(kind, _)| *kind == object.kind()).unwrap().1;
        let gvk = object.gvk();
        let key = ResourceKey::new(&gvk.group, &gvk.version, plural, object.namespace(), object.name());
        let dot = if gvk.group.is_empty() { "" } else { "." };
        let plural = format!("{plural}{dot}{}", gvk.group);
        Subject { path: format!("live/{}", key.path()), plural, name: object.name().to_owned() }
    };
    documents.into_iter().map(|document| one(document.value)).collect()
}

/// The live objects by path, without what no two of them share.
fn live(place: &Place<'_>, subjects: &[Subject]) -> BTreeMap<String, Value> {
    let one = |subject: &Subject| {
        let object = place.get(&subject.plural, &subject.name).unwrap_or_else(|| panic!("{} is gone", subject.path));
        (subject.path.clone(), without_identity(object))
    };
    subjects.iter().map(one).collect()
}

/// Much less than what is left out of Git, and not by the same code: what that
/// leaves out too much is missing here.
fn without_identity(mut object: Value) -> Value {
    let remove = |value: &mut Value, fields: &[&str]| {
        let map = value.as_object_mut().unwrap();
        fields.iter().for_each(|field| drop(map.remove(*field)));
    };
    remove(&mut object, &["status"]);
    let metadata = &mut object["metadata"];
    remove(metadata, &["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"]);
    if let Some(annotations) = metadata.get_mut("annotations") {
        let applied = "kubectl.kubernetes.io/last-applied-configuration";
        remove(annotations, &[applied, "deployment.kubernetes.io/revision"]);
        if annotations == &json!({}) {
            remove(metadata, &["annotations"]);
        }
    }
    // Handed out anew.
    if object["kind"] == "Service" && object["spec"]["clusterIP"] != "None" {
        remove(&mut object["spec"], &["clusterIP", "clusterIPs", "healthCheckNodePort"]);
    }
    object
}

fn files(place: &Place<'_>, subjects: &[Subject]) -> BTreeMap<String, String> {
    subjects.iter().map(|subject| (subject.path.clone(), place.wait_file(&subject.path, |_| true))).collect()
}

fn kubectl(place: &Place<'_>, user: &str, verb: &str, manifests: &str) {
    let said = place.cluster.kubectl(user, &[verb, "-f", "-"], manifests);
    said.unwrap_or_else(|complaint| panic!("kubectl {verb} as {user}: {complaint}"));
}

#[test]
fn what_is_in_git_applied_is_the_object_again() {
    let rig = Rig::start(FLAGS);
    let place = rig.place("preset");
    place.destination_with("live", "live", json!({"secrets": "plaintext"}));
    place.rule("own", "live", json!({}));
    let to = json!({"name": "live", "namespace": place.namespace});
    let rule = json!({"scope": "Cluster"});
    place.configure("ClusterWatchRule", "preset", json!({"destinationRef": to, "rules": [rule]}));
    place.wait_reason("clusterwatchrule", "preset", "Watching");
    place.wait_ready(&["own"]);
    let manifests = include_str!("preset.yaml").replace("NAMESPACE", &place.namespace);
    let subjects = subjects(&manifests);
    let mut types: Vec<_> = subjects.iter().map(|subject| &subject.plural).collect();
    types.dedup();
    assert_eq!(types.len(), TYPES);

    kubectl(&place, ALICE, "create", &manifests);
    let (first_files, first) = (files(&place, &subjects), live(&place, &subjects));
    let from_git: Vec<_> = first_files.values().map(String::as_str).collect();
    let from_git = from_git.join("---\n");
    // Over the live objects nothing changes.
    kubectl(&place, BOB, "apply", &from_git);
    assert_eq!(live(&place, &subjects), first);
    kubectl(&place, ALICE, "delete", &from_git);
    subjects.iter().for_each(|subject| place.wait_no_file(&subject.path));
    kubectl(&place, BOB, "apply", &from_git);
    assert_eq!(files(&place, &subjects), first_files);
    assert_eq!(live(&place, &subjects), first);
    // Alice and bob are never joined in one commit: an update by bob between
    // the two of alice would be there.
    for subject in &subjects {
        let commits = place.commits(&subject.path);
        let told: Vec<_> = commits.iter().map(|commit| commit.author.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(told, [ALICE, ALICE, BOB], "{}: {commits:?}", subject.path);
    }
    // What controllers make in every namespace is nobody's.
    assert!(place.get("configmap", "kube-root-ca.crt").is_some());
    assert_eq!(place.file(&place.config_map_path("kube-root-ca.crt")), None);
    place.kubectl_as(ADMIN, &["delete", "clusterwatchrule", "preset"]);
}
