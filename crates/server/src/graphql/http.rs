//! `/graphql`: POST for queries and mutations, GET for the WebSocket and, in a
//! browser, GraphiQL.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, State};
use axum::http::{HeaderMap, HeaderValue, Request as HttpRequest, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::execute::{Caller, Checked};
use super::prepare::Request;
use super::protocol::SUBPROTOCOL;
use super::reply::{Reply, refused_with};
use super::{Graphql, graphiql, socket};
use crate::api::Api;
use crate::api::error::{ApiError, Code};
use crate::http::Shutdown;
use crate::identity::{Session, bearer_token};
use crate::metrics::Metrics;

/// What the handlers need; a cheap handle.
#[derive(Clone)]
pub struct Front(Arc<Inner>);

struct Inner {
    graphql: Arc<Graphql>,
    api: Api,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
}

impl Front {
    pub fn new(graphql: Arc<Graphql>, api: Api, metrics: Arc<Metrics>, shutdown: Shutdown) -> Self {
        Self(Arc::new(Inner { graphql, api, metrics, shutdown }))
    }

    pub(super) fn graphql(&self) -> &Arc<Graphql> {
        &self.0.graphql
    }

    pub(super) fn api(&self) -> &Api {
        &self.0.api
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(super) fn shutdown(&self) -> Shutdown {
        self.0.shutdown.clone()
    }

    /// `Bearer …`, from a header or from `connection_init`.
    pub(super) fn authenticate(&self, authorization: Option<&str>) -> Result<Session, ApiError> {
        Ok(self.0.api.identities().authenticate(bearer_token(authorization)?)?)
    }
}

pub fn routes(front: Front) -> Router {
    Router::new().route("/graphql", get(on_get).post(on_post)).merge(graphiql::routes()).with_state(front)
}

async fn on_post(State(front): State<Front>, headers: HeaderMap, body: Bytes) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let session = match front.authenticate(authorization) {
        Ok(session) => session,
        Err(error) => return unauthenticated(&error),
    };
    match parse(&headers, &body) {
        Err(error) => respond(StatusCode::BAD_REQUEST, refused_with(&error)),
        Ok(request) => {
            let reply = answer(&front, &session, request).await;
            respond(if reply.executed { StatusCode::OK } else { StatusCode::BAD_REQUEST }, reply)
        }
    }
}

async fn answer(front: &Front, session: &Session, request: Request) -> Reply {
    let caller = Caller { api: front.api(), session, metrics: front.metrics() };
    match front.graphql().check(request).await {
        Checked::Done(reply) => reply,
        Checked::Query(ready) => front.graphql().execute(&ready, caller).await,
        Checked::Subscription(_) => {
            let message =
                format!("subscriptions need a WebSocket: connect to this address with the subprotocol `{SUBPROTOCOL}`");
            refused_with(&ApiError::bad_request(message))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostBody {
    query: Option<String>,
    operation_name: Option<String>,
    variables: Option<Map<String, Value>>,
}

fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Request, ApiError> {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"));
    if !is_json {
        return Err(ApiError::bad_request("send JSON, with the header `Content-Type: application/json`"));
    }
    let body: PostBody = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not a GraphQL request: {error}")))?;
    let query = body.query.ok_or_else(|| ApiError::bad_request("the body has no `query`"))?;
    Ok(Request { query, operation_name: body.operation_name, variables: body.variables.unwrap_or_default() })
}

fn respond(status: StatusCode, reply: Reply) -> Response {
    let mut response = (status, Body::from(reply.body)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn unauthenticated(error: &ApiError) -> Response {
    let mut response = respond(StatusCode::UNAUTHORIZED, refused_with(error));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tidegate\""));
    response
}

async fn on_get(State(front): State<Front>, request: HttpRequest<Body>) -> Response {
    let (mut parts, _) = request.into_parts();
    if parts.headers.contains_key(header::UPGRADE) {
        return match WebSocketUpgrade::from_request_parts(&mut parts, &front).await {
            Ok(upgrade) => open_socket(front, upgrade, &parts.headers),
            Err(rejection) => rejection.into_response(),
        };
    }
    let accepts_html = parts
        .headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.contains("text/html"));
    if accepts_html {
        return Html(graphiql::PAGE).into_response();
    }
    let message = "send queries and mutations by POST, open a WebSocket for subscriptions, or open this address in a browser for GraphiQL";
    respond(StatusCode::METHOD_NOT_ALLOWED, refused_with(&ApiError::bad_request(message)))
}

fn open_socket(front: Front, upgrade: WebSocketUpgrade, headers: &HeaderMap) -> Response {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    if !offered.flat_map(|value| value.split(',')).any(|protocol| protocol.trim() == SUBPROTOCOL) {
        let message = format!("this WebSocket speaks `{SUBPROTOCOL}`: name it in `Sec-WebSocket-Protocol`");
        return respond(StatusCode::BAD_REQUEST, refused_with(&ApiError::new(Code::BadRequest, message)));
    }
    let limit = front.graphql().limits.body_bytes_max;
    upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(move |socket| socket::run(front, socket))
}
