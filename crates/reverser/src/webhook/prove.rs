//! Asks the API server for something that it must call the webhook for, and
//! looks whether it did.
//!
//! The question is a Lease that is created as a dry run: it is admitted and
//! never stored. A webhook of its own is registered for it beside the one for
//! authors, in the same object, so that an API server that knows one knows the
//! other. It selects by a label that names the registration, so that an answer
//! is of this one and not of an earlier.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::register::Registration;
use crate::backoff::Backoff;
use crate::claims::TypeId;
use crate::cluster::collection;
use crate::proof::{TypeName, Verdict};

const WEBHOOK_NAME: &str = "proof.reverser.tidegate.dev";
const LABEL: &str = "reverser.tidegate.dev/proof";
/// An API server takes up a registration within a tenth of a second.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// After which a silent API server is told of. We go on asking.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What the API server was told.
pub(super) struct Registered {
    /// Of all that was told.
    pub mark: String,
    pub types: Arc<BTreeSet<TypeName>>,
}

/// The webhook of the question, beside the one for `authors`; and the mark.
pub(super) fn webhook(authors: &Value) -> (Value, String) {
    let mark = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(authors.to_string().as_bytes()));
    let mut webhook = authors.clone();
    webhook["name"] = WEBHOOK_NAME.into();
    webhook["objectSelector"] = json!({"matchLabels": {LABEL: mark}});
    webhook["rules"] = json!([{
        "apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"],
        "operations": ["CREATE"], "scope": "Namespaced",
    }]);
    (webhook, mark)
}

/// Which question this call is of, if it is of one.
pub(super) fn question(request: &Value) -> Option<&str> {
    let is_asked = request["dryRun"] == true && request["object"]["metadata"]["labels"].get(LABEL).is_some();
    request["name"].as_str().filter(|_| is_asked)
}

/// Until the API server has called us.
pub(super) async fn prove(registration: &Registration, registered: &Registered) {
    let (started, mut backoff) = (Instant::now(), Backoff::new(RETRY_MIN, RETRY_MAX));
    let (shared, types) = (&registration.shared, &registered.types);
    let mut is_told = false;
    loop {
        match ask(registration, &registered.mark).await {
            Ok(true) => {
                shared.metrics.is_called.set(1);
                if is_told {
                    tracing::info!("the API server calls the webhook");
                }
                return shared.proof.settle(types, Verdict::Calls);
            }
            // Somebody who may not do this may be called all the same.
            Err(error) => {
                tracing::debug!(error, "it is not known whether the API server calls the webhook");
                shared.proof.settle(types, Verdict::Unknown);
            }
            Ok(false) if started.elapsed() < SILENCE_MAX => {}
            Ok(false) => {
                let why = silence(registration);
                shared.metrics.is_called.set(0);
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!("authors are unknown: {why}");
                }
                shared.proof.settle(types, Verdict::Silent(why));
            }
        }
        sleep(backoff.next(rand::random())).await;
    }
}

fn silence(registration: &Registration) -> String {
    format!(
        "the API server does not call the webhook at {}: see that it can reach that address; its log has `failed calling webhook`",
        registration.target
    )
}

/// Whether the question came back through the webhook.
async fn ask(registration: &Registration, mark: &str) -> Result<bool, String> {
    let Registration { api, namespace, shared, .. } = registration;
    let question = format!("{}-proof-{:016x}", registration.name, rand::random::<u64>());
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": question, "namespace": namespace, "labels": {LABEL: mark}},
    });
    let leases = collection(&TypeId::new("coordination.k8s.io", "v1", "leases"), Some(namespace));
    let answer = api.create(&format!("{leases}?dryRun=All"), &lease).await;
    match shared.proof.has_heard(&question) {
        true => Ok(true),
        false => answer.map(|_| false).map_err(|error| error.told()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_of_what_was_told() {
        let authors = |types: &str| json!({"name": "authors", "rules": [types], "clientConfig": {"url": "u"}});
        let ((first, mark), (_, other)) = (webhook(&authors("a")), webhook(&authors("b")));
        assert_ne!(mark, other);
        assert_eq!(first["objectSelector"]["matchLabels"][LABEL], mark.as_str());
        assert_eq!(first["clientConfig"]["url"], "u", "the same way as for authors");
        assert_eq!(first["rules"][0]["operations"], json!(["CREATE"]));
    }

    #[test]
    fn only_a_dry_run_with_the_label_is_a_question() {
        let request = |is_dry: bool, labels: Value| json!({"name": "q", "dryRun": is_dry, "object": {"metadata": {"labels": labels}}});
        let mark = json!({LABEL: "m"});
        for (request, expected) in [
            (request(true, mark.clone()), Some("q")),
            (request(false, mark), None),
            (request(true, json!({})), None),
            (json!({"name": "q", "dryRun": true}), None),
        ] {
            assert_eq!(question(&request), expected, "{request}");
        }
    }
}
