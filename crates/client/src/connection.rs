//! One server: its address, its certificates, our token.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use rustls::ClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tls::client_config;
use crate::{ClientError, Refusal, TokenError, TokenSource, unreachable};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two pieces of an answer; a list may take its time to begin.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// A page ends at 32 MiB of objects by the server's default, 1 GiB at most.
const ANSWER_BYTES_MAX: usize = (1 << 30) + (64 << 20);
/// Of an answer that is not ours, say a proxy's page.
const FOREIGN_ANSWER_CHARS_MAX: usize = 200;
/// Of a refusal in plain text.
const FAILURE_CHARS_MAX: usize = 800;

pub struct Client {
    http: reqwest::Client,
    graphql: Url,
    token: TokenSource,
    tls: Arc<ClientConfig>,
}

/// Which server, who asks, and whom we trust.
#[derive(Clone, Debug)]
pub struct Options {
    /// `http://127.0.0.1:7300`; what follows the host is a prefix of its paths.
    pub server: String,
    pub token: TokenSource,
    /// Certificates (PEM) to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Between two pieces of an answer; longer for operations that take long.
    pub read_timeout: Duration,
}

impl Options {
    pub fn new(server: &str, token: TokenSource) -> Self {
        Self { server: server.into(), token, ca_file: None, read_timeout: READ_TIMEOUT }
    }
}

impl Client {
    /// Nothing is sent yet; but the token has to be there.
    pub fn new(options: &Options) -> Result<Self, ClientError> {
        let graphql = endpoint(&options.server)?;
        options.token.read()?;
        let tls = client_config(options.ca_file.as_deref())?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(ClientConfig::clone(&tls))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(options.read_timeout)
            // A redirect is not followed: the token is for this server.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(ClientError::Http)?;
        if graphql.scheme() == "http" && !is_loopback(&graphql) {
            tracing::warn!("{} is not encrypted: anybody on the way can read the token", options.server);
        }
        Ok(Self { http, graphql, token: options.token.clone(), tls })
    }

    /// The `data` of one operation.
    pub async fn query<T: DeserializeOwned>(&self, query: &str, variables: Value) -> Result<T, ClientError> {
        let request = self.http.post(self.graphql.clone()).json(&json!({"query": query, "variables": variables}));
        let (status, body) = self.send(request).await?;
        let Ok(answer) = serde_json::from_slice::<Answer<T>>(&body) else {
            return Err(self.foreign(&self.graphql, status, &body));
        };
        match (answer.errors.into_iter().next(), answer.data) {
            (Some(refusal), _) => Err(ClientError::Refused(refusal)),
            (None, Some(data)) => Ok(data),
            (None, None) => Err(self.foreign(&self.graphql, status, &body)),
        }
    }

    /// The JSON that a path of the server answers a POST with.
    pub async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let no_path =
            |reason: url::ParseError| ClientError::Address { server: path.into(), reason: Some(reason.to_string()) };
        let url = self.graphql.join(path).map_err(no_path)?;
        let (status, body) = self.send(self.http.post(url.clone())).await?;
        if !status.is_success() {
            let text: String = String::from_utf8_lossy(&body).chars().take(FAILURE_CHARS_MAX).collect();
            return Err(ClientError::Failed { status: status.as_u16(), text: text.trim().into() });
        }
        serde_json::from_slice(&body).map_err(|_| self.foreign(&url, status, &body))
    }

    async fn send(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let sent = request.header(AUTHORIZATION, bearer(&self.token()?)?).send().await;
        let sent = sent.map_err(|error| unreachable::explain(&self.graphql, &error))?;
        Ok((sent.status(), read(sent).await?))
    }

    fn foreign(&self, url: &Url, status: StatusCode, body: &[u8]) -> ClientError {
        let text: String = String::from_utf8_lossy(body).chars().take(FOREIGN_ANSWER_CHARS_MAX).collect();
        ClientError::Foreign { url: url.to_string(), status: status.as_u16(), text: text.escape_debug().to_string() }
    }

    /// As it is now.
    pub fn token(&self) -> Result<String, ClientError> {
        Ok(self.token.read()?)
    }

    pub fn tls(&self) -> Arc<ClientConfig> {
        self.tls.clone()
    }

    /// The same address, for a WebSocket.
    pub fn socket_url(&self) -> Url {
        let mut url = self.graphql.clone();
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        // Both are schemes with a host, so it does not fail.
        let _ = url.set_scheme(scheme);
        url
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Answer<T> {
    #[serde(default = "Option::default")]
    data: Option<T>,
    #[serde(default)]
    errors: Vec<Refusal>,
}

async fn read(mut response: Response) -> Result<Vec<u8>, ClientError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(ClientError::BrokeOff)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(ClientError::TooLarge { limit: ANSWER_BYTES_MAX });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| TokenError::NotAToken)?;
    value.set_sensitive(true);
    Ok(value)
}

/// `https://host/prefix` → `https://host/prefix/graphql`.
fn endpoint(server: &str) -> Result<Url, ClientError> {
    let wrong = |reason: Option<url::ParseError>| ClientError::Address {
        server: server.into(),
        reason: reason.map(|reason| reason.to_string()),
    };
    let mut url = Url::parse(server).map_err(|reason| wrong(Some(reason)))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong(None));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ClientError::Credentials { host: url.host_str().unwrap_or_default().into() });
    }
    let path = format!("{}/graphql", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_of_a_server() {
        for (server, expected) in [
            ("http://127.0.0.1:7300", Some("http://127.0.0.1:7300/graphql")),
            ("https://example.com/", Some("https://example.com/graphql")),
            ("https://example.com/tide/?x#y", Some("https://example.com/tide/graphql")),
            ("http://[::1]:7300", Some("http://[::1]:7300/graphql")),
            ("127.0.0.1:7300", None),
            ("localhost:7300", None),
            ("ftp://example.com", None),
            ("http://me:secret@example.com", None),
            ("https://token@example.com", None),
            ("", None),
        ] {
            assert_eq!(endpoint(server).ok().as_ref().map(Url::as_str), expected, "{server}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        let error = endpoint("https://me:secret@example.com:7300").unwrap_err().to_string();
        assert!(
            error.contains("example.com") && error.contains("--token-file") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn only_loopback_is_safe_in_the_clear() {
        for (url, expected) in [
            ("http://localhost:1", true),
            ("http://127.0.0.9", true),
            ("http://[::1]:7300", true),
            ("http://10.0.0.1", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
