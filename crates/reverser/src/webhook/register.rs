//! Keeps the ValidatingWebhookConfiguration as the claims want it: the API
//! server calls us for what somebody mirrors, and for nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tidegate_tls::Certificates;
use tokio::time::sleep;

use super::prove::{self, Registered, prove};
use super::server::PATH;
use crate::claims::{Routes, TypeId};
use crate::cluster::{Api, ApiError, collection, object};
use crate::engine::Shared;
use crate::proof::{TypeName, Verdict};
use crate::repeats::Repeats;

/// In case somebody else changed it.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_secs(2);
const WEBHOOK_NAME: &str = "authors.reverser.tidegate.dev";

/// How the API server reaches us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// From outside of the cluster.
    Url(String),
    Service {
        namespace: String,
        name: String,
        port: u16,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Service { namespace, name, port } => write!(f, "Service {namespace}/{name}, port {port}"),
        }
    }
}

#[derive(Clone)]
pub struct Registration {
    pub api: Api,
    /// The operator's own.
    pub namespace: String,
    /// Of the ValidatingWebhookConfiguration.
    pub name: String,
    pub target: Target,
    pub certificates: Arc<Certificates>,
    /// The API server waits no longer for us, and goes on.
    pub timeout_s: u32,
    pub shared: Arc<Shared>,
}

/// Never ends.
pub async fn keep_registered(registration: Registration) {
    let mut repeats = Repeats::default();
    loop {
        match register(&registration).await {
            Ok(registered) => {
                repeats.end();
                let proving = async {
                    // Before there is a plan nobody waits for it.
                    if let Some(registered) = &registered {
                        prove(&registration, registered).await;
                    }
                    std::future::pending().await
                };
                tokio::select! {
                    () = registration.shared.replanned.notified() => {}
                    () = registration.certificates.renewed() => {}
                    () = sleep(CHECK_INTERVAL) => {}
                    () = proving => {}
                }
            }
            Err(error) => {
                let error = error.told();
                if repeats.is_new(&error) {
                    tracing::error!(error, "the webhook is not registered: authors are unknown until it is");
                }
                unregistered(&registration.shared, error);
                sleep(RETRY).await;
            }
        }
    }
}

fn unregistered(shared: &Shared, error: String) {
    let types = types(&shared.desired.load().routes);
    shared.metrics.is_called.set(0);
    shared.proof.settle(&types, Verdict::Silent(format!("the webhook is not registered: {error}")));
}

/// `None` if it is as an earlier operator left it.
async fn register(registration: &Registration) -> Result<Option<Registered>, ApiError> {
    let shared = &registration.shared;
    let (is_planned, desired) = (shared.is_planned(), shared.desired.load_full());
    let of = TypeId::new("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations");
    let path = object(&of, None, &registration.name);
    let current = match registration.api.get(&path).await {
        Ok(current) => Some(current),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let known = current.as_ref().map_or(&Value::Null, |current| &current["webhooks"]);
    let authors = kept(webhook(registration, &desired.routes), known, is_planned);
    let (proof, mark) = prove::webhook(&authors);
    let webhooks = [authors, proof];
    match current {
        Some(current) if covers(&current["webhooks"], &webhooks) => {}
        Some(mut current) => {
            current["webhooks"] = json!(webhooks);
            registration.api.replace(&path, &current).await?;
        }
        None => {
            let fresh = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": registration.name}, "webhooks": webhooks,
            });
            registration.api.create(&collection(&of, None), &fresh).await?;
        }
    }
    Ok(is_planned.then(|| Registered { mark, types: types(&desired.routes) }))
}

/// The server adds defaults to what we wrote; what we wrote must be there.
fn covers(current: &Value, wanted: &[Value]) -> bool {
    let current = current.as_array().map_or(&[][..], Vec::as_slice);
    let has = |(current, wanted): (&Value, &Value)| {
        let mut fields = wanted.as_object().into_iter().flatten();
        fields.all(|(field, value)| current.get(field) == Some(value))
    };
    current.len() == wanted.len() && current.iter().zip(wanted).all(has)
}

fn types(routes: &Routes) -> Arc<BTreeSet<TypeName>> {
    Arc::new(routes.types().map(|of| (of.group.clone(), of.resource.clone())).collect())
}

/// Before there is a plan, what is called for stays as it was: a replica that
/// takes over would else have the API server forget it and learn it again,
/// and lose who did it meanwhile.
fn kept(mut webhook: Value, current: &Value, is_planned: bool) -> Value {
    if !is_planned && current[0]["rules"].is_array() {
        webhook["rules"] = current[0]["rules"].clone();
    }
    webhook
}

fn webhook(registration: &Registration, routes: &Routes) -> Value {
    let ca = STANDARD.encode(registration.certificates.ca_pem().as_bytes());
    let client = match &registration.target {
        Target::Url(url) => json!({"url": format!("{}{PATH}", url.trim_end_matches('/')), "caBundle": ca}),
        Target::Service { namespace, name, port } => {
            json!({"service": {"namespace": namespace, "name": name, "path": PATH, "port": port}, "caBundle": ca})
        }
    };
    json!({
        "name": WEBHOOK_NAME, "clientConfig": client, "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore", "sideEffects": "None", "timeoutSeconds": registration.timeout_s,
        "matchPolicy": "Equivalent", "rules": rules(routes),
    })
}

/// Every version, because people write in any; `scale`, because it changes
/// the object without a call for the object.
fn rules(routes: &Routes) -> Vec<Value> {
    let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for of in routes.types() {
        let resources = groups.entry(&of.group).or_default();
        resources.insert(of.resource.clone());
        resources.insert(format!("{}/scale", of.resource));
    }
    groups
        .into_iter()
        .map(|(group, resources)| {
            json!({
                "apiGroups": [group], "apiVersions": ["*"], "resources": resources,
                "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "*",
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Operations;
    use crate::config::Id;

    #[test]
    fn the_server_is_asked_for_what_is_claimed() {
        let mut routes = Routes::default();
        let destination = Id::new("ops", "d");
        routes.add(&destination, &TypeId::new("apps", "v1", "deployments"), None, Operations::ALL);
        routes.add(&destination, &TypeId::new("", "v1", "secrets"), Some("a"), Operations::ALL);
        let rules = rules(&routes);
        assert_eq!(rules[0]["resources"], json!(["secrets", "secrets/scale"]));
        assert_eq!(rules[1]["resources"], json!(["deployments", "deployments/scale"]));
    }

    #[test]
    fn what_is_registered_stays_until_there_is_a_plan() {
        let (old, new) = (json!({"url": "old", "rules": ["a"]}), json!({"url": "new", "rules": []}));
        let known = json!([old]);
        assert_eq!(kept(new.clone(), &known, false), json!({"url": "new", "rules": ["a"]}));
        assert_eq!(kept(new.clone(), &known, true), new);
        for fresh in [json!([]), Value::Null, json!([{"url": "old"}])] {
            assert_eq!(kept(new.clone(), &fresh, false), new, "{fresh}");
        }
        let covers =
            |known: &Value, wanted: &[&Value]| covers(known, &wanted.iter().copied().cloned().collect::<Vec<_>>());
        assert!(covers(&known, &[&old]) && !covers(&known, &[&new]) && !covers(&json!([]), &[&new]));
        assert!(!covers(&known, &[&old, &old]), "one of two is missing");
    }
}
