//! Git's smart protocol over HTTP, at `/git/<namespace>/<name>.git`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tidegate_git::{PackRequest, Service};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Repos;
use super::body::{Encoding, Source};
use super::hosting::Hosted;
use super::id::RepositoryId;
use super::limits::HostedLimits;
use super::pack::{self, PACK_TIME_MAX};
use super::projector::chain;
use super::verify::Repair;
use crate::http::{HttpError, Limits, STOPPING, Shutdown};
use crate::identity::{Attributes, AuthError, Identities, Session, Verb, basic_or_bearer_token};

/// Each is a git process of some 10 MiB, and its children.
const CONVERSATIONS_MAX: usize = 64;
/// Of one identity: however many stall, three quarters are left for others.
const CONVERSATIONS_PER_IDENTITY_MAX: usize = 16;
const CONVERSATION_WAIT_MAX: Duration = Duration::from_secs(30);
/// `version=2:…`: longer is not a client of git.
const PROTOCOL_BYTES_MAX: usize = 64;

/// For these routes: a push is larger and takes longer than any other request.
pub fn limits(limits: Limits, hosted: &HostedLimits) -> Limits {
    let body_bytes_max = usize::try_from(hosted.body_bytes_max()).unwrap_or(usize::MAX);
    Limits { body_bytes_max, body_read_timeout: PACK_TIME_MAX, ..limits }
}

#[derive(Clone)]
struct Front {
    repos: Arc<Repos>,
    identities: Arc<Identities>,
    shutdown: Shutdown,
    conversations: Arc<Semaphore>,
    /// By user; an entry goes with its last conversation.
    by_identity: Arc<Mutex<HashMap<Box<str>, usize>>>,
}

pub fn routes(repos: Arc<Repos>, identities: Arc<Identities>, shutdown: Shutdown) -> Router {
    let conversations = Arc::new(Semaphore::new(CONVERSATIONS_MAX));
    Router::new()
        .route("/git/{namespace}/{repository}/info/refs", get(info_refs))
        .route("/git/{namespace}/{repository}/verify", post(verify))
        .route("/git/{namespace}/{repository}/git-upload-pack", post(upload_pack))
        .route("/git/{namespace}/{repository}/git-receive-pack", post(receive_pack))
        .with_state(Front { repos, identities, shutdown, conversations, by_identity: Arc::default() })
}

type Names = Path<(String, String)>;

#[derive(Deserialize)]
struct RefsQuery {
    service: Option<String>,
}

async fn info_refs(
    State(front): State<Front>,
    names: Names,
    Query(query): Query<RefsQuery>,
    headers: HeaderMap,
) -> Response {
    let service = query.service.as_deref().and_then(Service::parse);
    let Some(service) = service else {
        let message = "the dumb protocol is not spoken here: use git 1.6.6 or newer";
        return plain(HttpError::new(StatusCode::FORBIDDEN, "FORBIDDEN", message));
    };
    front.answer(names, service, &headers, None).await
}

async fn upload_pack(State(front): State<Front>, names: Names, headers: HeaderMap, body: Body) -> Response {
    front.answer(names, Service::UploadPack, &headers, Some(body)).await
}

async fn receive_pack(State(front): State<Front>, names: Names, headers: HeaderMap, body: Body) -> Response {
    front.answer(names, Service::ReceivePack, &headers, Some(body)).await
}

#[derive(Deserialize)]
struct VerifyQuery {
    #[serde(default)]
    repair: bool,
}

/// For `tidegate repo verify`: a report as JSON.
async fn verify(
    State(front): State<Front>,
    names: Names,
    Query(query): Query<VerifyQuery>,
    headers: HeaderMap,
) -> Response {
    let repair = if query.repair { Repair::FromGit } else { Repair::No };
    front.verify(names, repair, &headers).await.unwrap_or_else(plain)
}

impl Front {
    /// To look needs what a clone needs, to mend what a push needs.
    async fn verify(&self, names: Names, repair: Repair, headers: &HeaderMap) -> Result<Response, HttpError> {
        let service = if repair == Repair::No { Service::UploadPack } else { Service::ReceivePack };
        let (hosted, session) = self.find(names, service, headers).await?;
        let _place = self.place(&session).await?;
        let report = self.repos.projector.verify(&hosted, repair).await.map_err(|error| failed(&hosted.id, &error))?;
        Ok(axum::Json(report).into_response())
    }

    /// Without a body, it is the first request of a conversation.
    async fn answer(&self, names: Names, service: Service, headers: &HeaderMap, body: Option<Body>) -> Response {
        self.converse(names, service, headers, body).await.unwrap_or_else(plain)
    }

    async fn converse(
        &self,
        names: Names,
        service: Service,
        headers: &HeaderMap,
        body: Option<Body>,
    ) -> Result<Response, HttpError> {
        let (hosted, session) = self.find(names, service, headers).await?;
        let (id, advertise) = (hosted.id.clone(), body.is_none());
        if let (Some(remote), Service::ReceivePack) = (&hosted.remote, service) {
            return Err(HttpError::new(StatusCode::FORBIDDEN, "FORBIDDEN", remote.push_refused(&id)));
        }
        let place = self.place(&session).await?;
        let source = Source::new(body.unwrap_or_default(), encoding(headers)?, &self.repos.limits);
        let output = match (service, advertise) {
            (Service::UploadPack, _) => {
                let protocol = protocol(headers);
                let is_second = protocol.as_deref().is_some_and(|text| text.contains("version=2"));
                let prefix = if advertise && !is_second { announcement(service) } else { Bytes::new() };
                let pack =
                    hosted.git.serve(PackRequest { advertise, protocol }).map_err(|error| failed(&id, &error))?;
                streamed(prefix, pack::converse(pack, source, place))
            }
            (Service::ReceivePack, true) => {
                let refs = hosted.git.advertise().await.map_err(|error| failed(&id, &error))?;
                Body::from([announcement(service), refs].concat())
            }
            (Service::ReceivePack, false) => {
                streamed(Bytes::new(), self.repos.receiver().converse(hosted, source, place))
            }
        };
        let kind = if advertise { "advertisement" } else { "result" };
        let media_type = format!("application/x-{}-{kind}", service.name());
        Ok(([(header::CONTENT_TYPE, media_type)], output).into_response())
    }

    async fn find(
        &self,
        Path((namespace, name)): Names,
        service: Service,
        headers: &HeaderMap,
    ) -> Result<(Hosted, Session), HttpError> {
        let session = self.session(headers)?;
        // As Git hosts do, with or without.
        let id = RepositoryId::new(&namespace, name.strip_suffix(".git").unwrap_or(&name));
        let id = id.ok_or_else(|| not_found(&format!("{namespace}/{name}")))?;
        // Before anything is read: nobody learns what there is by asking.
        self.authorize(&session, service, &id)?;
        let found = self.repos.find(&id).await.map_err(|error| failed(&id, &error))?;
        Ok((found.ok_or_else(|| not_found(&id.to_string()))?, session))
    }

    fn session(&self, headers: &HeaderMap) -> Result<Session, HttpError> {
        let header = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
        match basic_or_bearer_token(header) {
            // It is how git begins. To ask for a token that nobody is there to
            // take would have git call it wrong.
            Err(AuthError::Missing) if self.shutdown.is_draining() => Err(HttpError::unavailable(STOPPING)),
            token => Ok(self.identities.authenticate(&token?)?),
        }
    }

    fn authorize(&self, session: &Session, service: Service, id: &RepositoryId) -> Result<(), HttpError> {
        let verb = match service {
            Service::UploadPack => Verb::Fetch,
            Service::ReceivePack => Verb::Push,
        };
        let asked = Attributes::new(verb, &RepositoryId::resource()).namespace(Some(&id.namespace)).name(&id.name);
        Ok(self.identities.authorize(session, &asked)?)
    }

    /// One of the places that there are for conversations, and of those that
    /// one identity may have.
    async fn place(&self, session: &Session) -> Result<Place, HttpError> {
        let user: Box<str> = (&*session.identity().user).into();
        let share = Share::take(&self.by_identity, user).ok_or_else(|| {
            let reason = "git requests of this identity are under way already: wait for one to end";
            HttpError::unavailable(format!("{CONVERSATIONS_PER_IDENTITY_MAX} {reason}"))
        })?;
        Ok(Place { _permit: self.permit().await?, _share: share })
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, HttpError> {
        let permit = tokio::time::timeout(CONVERSATION_WAIT_MAX, self.conversations.clone().acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| {
            HttpError::unavailable(format!("{CONVERSATIONS_MAX} git requests are under way already: try again"))
        })
    }
}

struct Place {
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

/// One more conversation of an identity, as long as it lives.
struct Share {
    counts: Arc<Mutex<HashMap<Box<str>, usize>>>,
    user: Box<str>,
}

impl Share {
    fn take(counts: &Arc<Mutex<HashMap<Box<str>, usize>>>, user: Box<str>) -> Option<Self> {
        let mut locked = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = locked.entry(user.clone()).or_default();
        if *count >= CONVERSATIONS_PER_IDENTITY_MAX {
            return None;
        }
        *count += 1;
        Some(Self { counts: counts.clone(), user })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut locked = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = locked.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                locked.remove(&self.user);
            }
        }
    }
}

/// Only a fetch has a second version of the protocol.
fn protocol(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("git-protocol")?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=:._-".contains(&byte);
    let is_good = text.len() <= PROTOCOL_BYTES_MAX && text.bytes().all(is_plain);
    is_good.then(|| text.to_owned())
}

fn streamed(prefix: Bytes, output: pack::Output) -> Body {
    Body::from_stream(stream::iter([Ok(prefix)]).chain(pack::as_stream(output)))
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, HttpError> {
    match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(Encoding::Plain),
        Some(b"gzip" | b"x-gzip") => Ok(Encoding::Gzip),
        Some(_) => {
            let message = "the body's Content-Encoding is not known: send it plain or as gzip";
            Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "BAD_REQUEST", message))
        }
    }
}

/// Git's first line, in its own framing: four hex digits of length, and the
/// end of a section.
fn announcement(service: Service) -> Bytes {
    let line = format!("# service={}\n", service.name());
    format!("{:04x}{line}0000", line.len() + 4).into()
}

fn not_found(shown: &str) -> HttpError {
    let shown: String = shown.chars().take(100).collect();
    let message = format!(
        "there is no hosted repository {shown}: clone /git/<namespace>/<name>.git, and define a Repository object first"
    );
    HttpError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
}

fn failed(id: &RepositoryId, error: &dyn std::error::Error) -> HttpError {
    tracing::error!(repository = %id, reason = chain(error), "failed to serve the repository");
    HttpError::unavailable("the repository cannot be served at present: the server's log has the reason")
}

/// Git shows plain text to its user; of anything else it shows the number.
fn plain(error: HttpError) -> Response {
    let challenge =
        (error.status == StatusCode::UNAUTHORIZED).then(|| HeaderValue::from_static("Basic realm=\"tidegate\""));
    let mut response = error.into_plain_response();
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_counts_itself() {
        assert_eq!(announcement(Service::UploadPack), "001e# service=git-upload-pack\n0000");
        assert_eq!(announcement(Service::ReceivePack), "001f# service=git-receive-pack\n0000");
    }

    #[test]
    fn one_identity_has_its_share() {
        let counts = Arc::default();
        let mut held: Vec<_> = (0..CONVERSATIONS_PER_IDENTITY_MAX).map(|_| Share::take(&counts, "a".into())).collect();
        assert!(held.iter().all(Option::is_some) && Share::take(&counts, "a".into()).is_none());
        assert!(Share::take(&counts, "b".into()).is_some());
        held.pop();
        assert!(Share::take(&counts, "a".into()).is_some());
        drop(held);
        assert!(counts.lock().unwrap().is_empty());
    }

    #[test]
    fn protocols() {
        for (header, expected) in
            [("version=2", Some("version=2")), ("version=2 && true", None), (&"a".repeat(65), None)]
        {
            let headers = HeaderMap::from_iter([("git-protocol".parse().unwrap(), header.parse().unwrap())]);
            assert_eq!(protocol(&headers).as_deref(), expected, "{header}");
        }
        assert_eq!(protocol(&HeaderMap::new()), None);
    }
}
