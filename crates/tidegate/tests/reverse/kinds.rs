//! Kinds whose objects people change: where these are in the cluster and in
//! Git, and which state they are in there.

use std::collections::BTreeMap;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use serde_json::{Value, json};
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, Writer};
use tidegate_testkit::place::Place;
use tidegate_testkit::programs::sops_decrypt;

/// Of the kinds that are defined for the storms.
const GROUP: &str = "storm.example.com";
/// What every Secret's value begins with. It is base64, as the API has it.
const HIDDEN: &str = "hiddenhidden";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    ConfigMap,
    /// Encrypted in Git.
    Secret,
    Widget,
    /// Of the whole cluster.
    Zone,
}

impl Kind {
    /// Each is one file for each object; `n7` is of the kind with the place 7
    /// modulo their number.
    pub const ALL: &[Self] = &[Self::ConfigMap, Self::Secret, Self::Widget, Self::Zone];
    pub const CONFIG_MAPS: &[Self] = &[Self::ConfigMap];

    pub fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::Widget => "widgets",
            Self::Zone => "zones",
        }
    }

    fn is_core(self) -> bool {
        matches!(self, Self::ConfigMap | Self::Secret)
    }

    /// Of its objects, after the version.
    fn scope(self, namespace: &str) -> String {
        if self == Self::Zone { String::new() } else { format!("{namespace}/") }
    }

    fn folder(self, place: &Place<'_>) -> String {
        let group = if self.is_core() { String::new() } else { format!("{GROUP}/") };
        format!("live/{group}v1/{}/{}", self.resource(), self.scope(&place.namespace))
    }

    /// The same person at this kind's objects.
    pub fn writer(self, of: &Writer, namespace: &str) -> Writer {
        let root = if self.is_core() { "api/v1".to_owned() } else { format!("apis/{GROUP}/v1") };
        let scope = self.scope(namespace);
        let scope = if scope.is_empty() { scope } else { format!("namespaces/{scope}") };
        let version = root.trim_start_matches("api/").trim_start_matches("apis/");
        of.at(&format!("{root}/{scope}{}", self.resource()), version, &format!("{self:?}"))
    }

    fn field(self) -> &'static str {
        if self.is_core() { "data" } else { "spec" }
    }

    /// Its fields with a value that no other change has.
    pub fn fields(self, count: u32) -> Value {
        let value = if self == Self::Secret { format!("{HIDDEN}{count:08}") } else { count.to_string() };
        json!({self.field(): {"value": value}})
    }

    fn in_cluster(self, object: &Value) -> Option<String> {
        let value = object[self.field()]["value"].as_str()?;
        let metadata = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Some(match self {
            Self::Secret => format!("uid={} resourceVersion={}", metadata("uid"), metadata("resourceVersion")),
            _ => value.to_owned(),
        })
    }

    /// A Secret's file says in its first line of which state it is.
    fn in_git(self, text: &str) -> Option<String> {
        let value = text.lines().find_map(|line| line.trim().strip_prefix("value: "))?;
        match self {
            Self::Secret => Some(text.strip_prefix("# tidegate ")?.split_once(" sha256=")?.0.to_owned()),
            _ => Some(value.trim_matches('"').to_owned()),
        }
    }
}

/// Whether Git has every object as the cluster has it, and no other.
pub fn is_in_step(place: &Place<'_>, kinds: &[Kind]) -> bool {
    in_git(place, kinds) == in_cluster(place, kinds)
}

/// Each object's state, by the path of its file.
fn in_cluster(place: &Place<'_>, kinds: &[Kind]) -> BTreeMap<String, String> {
    let mut states = BTreeMap::new();
    for kind in kinds {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = |object: &Value| format!("{}{}.yaml", kind.folder(place), name(object));
        let objects = list(place, *kind);
        states.extend(objects.iter().filter_map(|object| Some((path(object), kind.in_cluster(object)?))));
    }
    states
}

fn in_git(place: &Place<'_>, kinds: &[Kind]) -> BTreeMap<String, String> {
    let read = |path: String| {
        let kind = kinds.iter().find(|kind| path.starts_with(&kind.folder(place)))?;
        let state = kind.in_git(&place.file(&path)?)?;
        Some((path, state))
    };
    place.files().into_iter().filter_map(read).collect()
}

fn list(place: &Place<'_>, kind: Kind) -> Vec<Value> {
    let text = place.kubectl_as(ADMIN, &["get", kind.resource(), "-o", "json"]);
    let Value::Array(objects) = serde_json::from_str::<Value>(&text).unwrap()["items"].take() else { panic!("{text}") };
    objects
}

/// Everything is mirrored to `live`, Secrets for the holder of the key.
pub struct AllKinds(Identity);

impl AllKinds {
    pub fn mirror(place: &Place<'_>) -> Self {
        for (kind, scope) in [(Kind::Widget, "Namespaced"), (Kind::Zone, "Cluster")] {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let versions =
                json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]);
            let names = json!({"plural": kind.resource(), "kind": format!("{kind:?}")});
            place.apply(&json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{}.{GROUP}", kind.resource())},
                "spec": {"group": GROUP, "scope": scope, "names": names, "versions": versions},
            }));
        }
        let identity = Identity::generate();
        let encryption = json!({"provider": "sops-age", "recipients": [identity.to_public().to_string()]});
        place.destination_with("live", "live", json!({"encryption": encryption}));
        place.rule("maps", "live", json!({"resources": ["configmaps", "secrets", "widgets"]}));
        let rule = json!({"scope": "Cluster", "resources": ["zones"]});
        let to = json!({"name": "live", "namespace": place.namespace});
        place.configure("ClusterWatchRule", &place.namespace, json!({"destinationRef": to, "rules": [rule]}));
        place.kubectl_as(ADMIN, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"]);
        Self(identity)
    }

    /// Secrets are what they are in the cluster for whoever has the key, and
    /// were never to be read by anybody else.
    pub fn check_secrets(&self, place: &Place<'_>) {
        let (folder, key) = (Kind::Secret.folder(place), self.0.to_string());
        let mut count = 0;
        for secret in list(place, Kind::Secret) {
            let Some(value) = secret["data"]["value"].as_str() else { continue };
            let path = format!("{folder}{}.yaml", secret["metadata"]["name"].as_str().unwrap());
            let decrypted = sops_decrypt(key.expose_secret(), &place.file(&path).unwrap());
            assert!(decrypted.contains(&format!("value: {value}\n")), "{path}: {decrypted}");
            count += 1;
        }
        assert!(count > 0, "nothing was checked");
        let all = bare::git(&place.repository, &["log", "-p", "--all", "--format=%B"]);
        assert!(!all.contains(HIDDEN), "the value of a Secret is in Git");
    }

    /// The next operator of this cluster has nothing to do with it.
    pub fn remove(&self, place: &Place<'_>) {
        place.kubectl_as(ADMIN, &["delete", "clusterwatchrule", &place.namespace]);
        let names = [Kind::Widget, Kind::Zone].map(|kind| format!("{}.{GROUP}", kind.resource()));
        place.kubectl_as(ADMIN, &["delete", "crd", &names[0], &names[1], "--wait=false"]);
    }
}
