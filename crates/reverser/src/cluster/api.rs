//! Requests and their failures.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::time::timeout;

use super::obstacle::Access;

/// An answer that takes longer is a server that does not answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Of one answer: as JSON values it takes about three times as much. A page of
/// 500 objects may have more, of the size that etcd allows (1.5 MiB), and is
/// then asked for in smaller ones.
const ANSWER_BYTES_MAX: usize = 64 << 20;

pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const JSON: &str = "application/json";

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server said no.
    #[error("{method} {path}: {status}: {message}")]
    Refused { method: Method, path: String, status: StatusCode, message: String },
    #[error("{method} {path}: the answer has more than {ANSWER_BYTES_MAX} bytes")]
    TooLarge { method: Method, path: String },
    #[error("{method} {path} failed")]
    Failed { method: Method, path: String, source: Box<dyn std::error::Error + Send + Sync> },
}

#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
struct Late(Duration);

impl ApiError {
    pub(super) fn failed(
        method: &Method,
        path: &str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed { method: method.clone(), path: path.into(), source: error.into() }
    }

    fn late(method: &Method, path: &str) -> Self {
        Self::failed(method, path, Late(ANSWER_TIME_MAX))
    }

    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::TooLarge { .. } | Self::Failed { .. } => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }

    pub fn is_conflict(&self) -> bool {
        self.status() == Some(StatusCode::CONFLICT)
    }

    /// What kept us from an answer, without what it happened to; `None` if
    /// there was one.
    pub fn no_answer(&self) -> Option<String> {
        match self {
            Self::Failed { source, .. } => Some(deepest(source.as_ref())),
            Self::Refused { .. } | Self::TooLarge { .. } => None,
        }
    }

    /// With its causes, for a condition or a log.
    pub fn told(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

/// The first cause: errors of HTTP clients say their causes themselves.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Api {
    client: Client,
    address: Arc<str>,
    access: Access,
    user: Option<Arc<str>>,
}

impl Api {
    pub fn new(client: Client, address: impl Into<Arc<str>>, access: Access) -> Self {
        Self { client, address: address.into(), access, user: None }
    }

    /// What the kubeconfig calls whoever asks.
    #[must_use]
    pub fn of_user(mut self, user: Option<String>) -> Self {
        self.user = user.map(Into::into);
        self
    }

    /// Of the API server, for people.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn access(&self) -> Access {
        self.access
    }

    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub async fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.json(Call::get(path)).await
    }

    /// From somebody who cannot wait as long as others.
    pub async fn get_within(&self, path: &str, time_max: Duration) -> Result<Value, ApiError> {
        let got = timeout(time_max, self.get(path)).await;
        got.map_err(|_| ApiError::failed(&Method::GET, path, Late(time_max)))?
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Result<Value, ApiError> {
        self.json(Call { accept, ..Call::get(path) }).await
    }

    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.json(Call::with(Method::POST, path, JSON, object)).await
    }

    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.json(Call::with(Method::PUT, path, JSON, object)).await
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, ApiError> {
        self.json(Call::with(Method::PATCH, path, MERGE_PATCH, patch)).await
    }

    /// A watch: the body goes on for as long as the server likes.
    pub async fn open(&self, path: &str) -> Result<Body, ApiError> {
        let response = self.send(Call::get(path)).await?;
        Ok(self.checked(Method::GET, path, response).await?.into_body())
    }

    async fn json(&self, call: Call<'_>) -> Result<Value, ApiError> {
        let (method, path) = (call.method.clone(), call.path);
        let whole = async {
            let response = self.send(call).await?;
            let response = self.checked(method.clone(), path, response).await?;
            read(&method, path, response).await
        };
        let bytes = timeout(ANSWER_TIME_MAX, whole).await.map_err(|_| ApiError::late(&method, path))??;
        serde_json::from_slice(&bytes).map_err(|error| ApiError::failed(&method, path, error))
    }

    async fn send(&self, call: Call<'_>) -> Result<Response<Body>, ApiError> {
        let Call { method, path, accept, content, body } = call;
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(http::header::ACCEPT, accept)
            .header(http::header::CONTENT_TYPE, content)
            .body(Body::from(body))
            .map_err(|error| ApiError::failed(&method, path, error))?;
        let sent = timeout(ANSWER_TIME_MAX, self.client.send(request)).await;
        sent.map_err(|_| ApiError::late(&method, path))?.map_err(|error| ApiError::failed(&method, path, error))
    }

    async fn checked(&self, method: Method, path: &str, response: Response<Body>) -> Result<Response<Body>, ApiError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = read(&method, path, response).await.unwrap_or_default();
        let said = serde_json::from_slice::<Value>(&bytes).ok();
        let message = said.as_ref().and_then(|said| said["message"].as_str()).map(str::to_owned);
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&bytes).chars().take(200).collect());
        Err(ApiError::Refused { method, path: path.into(), status, message })
    }
}

/// One request.
struct Call<'c> {
    method: Method,
    path: &'c str,
    accept: &'c str,
    content: &'c str,
    body: Vec<u8>,
}

impl<'c> Call<'c> {
    fn get(path: &'c str) -> Self {
        Self { method: Method::GET, path, accept: JSON, content: JSON, body: Vec::new() }
    }

    fn with(method: Method, path: &'c str, content: &'c str, body: &Value) -> Self {
        Self { method, path, accept: JSON, content, body: body.to_string().into_bytes() }
    }
}

async fn read(method: &Method, path: &str, response: Response<Body>) -> Result<Bytes, ApiError> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let read = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => ApiError::TooLarge { method: method.clone(), path: path.into() },
        false => ApiError::failed(method, path, error),
    });
    Ok(read?.to_bytes())
}
