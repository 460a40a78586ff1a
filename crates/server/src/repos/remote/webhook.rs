//! `POST /hooks/git/<namespace>/<name>`: a host of Git says that it was pushed
//! to.
//!
//! Invariant: whoever does not know the shared secret learns nothing, not even
//! whether there is such a repository.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::json;

use super::request::request_sync;
use super::signature::is_signed;
use crate::api::Api;
use crate::http::{HttpError, Limits};
use crate::repos::hosting::Hosted;
use crate::repos::id::RepositoryId;
use crate::repos::{Repos, projector::chain};

/// The file of a secret that holds the one shared with the host.
pub const WEBHOOK_KEY: &str = "webhook";
/// A push of 20 commits that touch thousands of files is some 2 MiB.
const PAYLOAD_BYTES_MAX: usize = 8 << 20;
/// What names the event, by host.
const EVENT_HEADERS: [&str; 4] = ["x-github-event", "x-forgejo-event", "x-gitea-event", "x-gitlab-event"];
const PUSH_EVENTS: [&str; 3] = ["push", "Push Hook", "System Hook"];

/// For these routes.
pub fn limits(limits: Limits) -> Limits {
    Limits { body_bytes_max: PAYLOAD_BYTES_MAX, ..limits }
}

#[derive(Clone)]
struct Front {
    api: Api,
    repos: Arc<Repos>,
}

pub fn routes(api: Api, repos: Arc<Repos>) -> Router {
    Router::new().route("/hooks/git/{namespace}/{name}", post(hook)).with_state(Front { api, repos })
}

async fn hook(
    State(front): State<Front>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match front.answer(&namespace, &name, &headers, &body).await {
        Ok(told) => (StatusCode::ACCEPTED, axum::Json(json!({"result": told}))).into_response(),
        Err(error) => error.into_response(),
    }
}

impl Front {
    async fn answer(
        &self,
        namespace: &str,
        name: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<&'static str, HttpError> {
        let known = match RepositoryId::new(namespace, name) {
            Some(id) => self.secret_of(&id).await,
            None => None,
        };
        // As much work for a repository that does not exist.
        let secret = known.as_ref().map_or_else(|| uuid::Uuid::new_v4().into_bytes().to_vec(), |known| known.1.clone());
        let is_good = is_signed(headers, body, &secret);
        let Some((hosted, _)) = known.filter(|_| is_good) else { return Err(unknown()) };
        if !is_push_to(&hosted.branch, headers, body)? {
            return Ok("nothing to do");
        }
        let syncer = self.repos.syncer();
        let requested = request_sync(&self.api, &hosted.id, || syncer.is_syncing(&hosted.id)).await;
        requested.map_err(|error| {
            tracing::error!(repository = %hosted.id, %error, "failed to note a webhook");
            HttpError::unavailable("the request cannot be noted at present: send it again")
        })?;
        Ok("a fetch is on its way")
    }

    /// What the repository shares with its host; `None` for all that has none.
    async fn secret_of(&self, id: &RepositoryId) -> Option<(Hosted, Vec<u8>)> {
        let found = self.repos.hosting().find(id).await;
        let hosted =
            found.inspect_err(|error| tracing::error!(repository = %id, reason = chain(error), "a webhook failed"));
        let hosted = hosted.ok().flatten()?;
        let name = hosted.remote.as_ref()?.secret.as_ref()?;
        let files = self.repos.syncer().secrets.read(&id.namespace, name);
        let files = files.inspect_err(|error| tracing::warn!(repository = %id, %error, "a webhook has no secret"));
        let secret = files.ok()?.remove(WEBHOOK_KEY)?;
        let secret = secret.trim_ascii_end().to_vec();
        (!secret.is_empty()).then_some((hosted, secret))
    }
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "ref")]
    reference: Option<String>,
}

/// Pings and all other events are no reason to fetch.
fn is_push_to(branch: &str, headers: &HeaderMap, body: &[u8]) -> Result<bool, HttpError> {
    let event = EVENT_HEADERS.into_iter().find_map(|name| headers.get(name));
    if event.is_none_or(|event| !PUSH_EVENTS.iter().any(|known| event == known)) {
        return Ok(false);
    }
    let is_form = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.starts_with("application/x-www-form-urlencoded")));
    let form = if is_form { form_payload(body) } else { None };
    let payload: Result<Payload, _> = serde_json::from_slice(form.as_deref().unwrap_or(body));
    let payload = payload.map_err(|error| {
        let message = format!("the payload is not one of a push: {error}; send it as JSON");
        HttpError::new(StatusCode::BAD_REQUEST, "BAD_REQUEST", message)
    })?;
    Ok(payload.reference.as_deref().and_then(|name| name.strip_prefix("refs/heads/")) == Some(branch))
}

fn form_payload(body: &[u8]) -> Option<Vec<u8>> {
    let pairs = url::form_urlencoded::parse(body);
    pairs.into_iter().find(|(name, _)| name == "payload").map(|(_, value)| value.into_owned().into_bytes())
}

fn unknown() -> HttpError {
    let message = "the signature is not one of a repository here: check the address and the shared secret";
    HttpError::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: (&'static str, &str), kind: &str, body: &str) -> Result<bool, HttpError> {
        let headers = HeaderMap::from_iter([
            (event.0.parse().unwrap(), event.1.parse().unwrap()),
            (header::CONTENT_TYPE, kind.parse().unwrap()),
        ]);
        is_push_to("main", &headers, body.as_bytes())
    }

    #[test]
    fn what_is_a_push_to_the_branch() {
        const JSON: &str = "application/json";
        const FORM: &str = "application/x-www-form-urlencoded";
        let main = r#"{"ref": "refs/heads/main", "after": "1"}"#;
        for (event, kind, body, expected) in [
            (("x-github-event", "push"), JSON, main, true),
            (("x-github-event", "push"), FORM, "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D", true),
            (("x-gitea-event", "push"), JSON, main, true),
            (("x-forgejo-event", "push"), JSON, main, true),
            (("x-gitlab-event", "Push Hook"), JSON, main, true),
            (("x-github-event", "push"), JSON, r#"{"ref": "refs/heads/other"}"#, false),
            (("x-github-event", "push"), JSON, r#"{"ref": "refs/tags/main"}"#, false),
            (("x-github-event", "ping"), JSON, r#"{"zen": "x"}"#, false),
            (("x-github-event", "issues"), JSON, "not read", false),
            (("x-gitlab-event", "Merge Request Hook"), JSON, main, false),
            (("x-other", "push"), JSON, main, false),
        ] {
            assert_eq!(check(event, kind, body).unwrap(), expected, "{event:?} {body}");
        }
        assert_eq!(check(("x-github-event", "push"), JSON, "{").unwrap_err().status, StatusCode::BAD_REQUEST);
    }
}
