//! One server: its address, its certificates, our token.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Response, Url};
use rustls::ClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::tls::client_config;
use super::token::TokenSource;
use super::unreachable;
use crate::cli::ConnectionArgs;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two pieces of an answer; a list may take its time to begin.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// A page ends at 32 MiB of objects by the server's default, 1 GiB at most.
const ANSWER_BYTES_MAX: usize = (1 << 30) + (64 << 20);
/// Of an answer that is not ours, say a proxy's page.
const FOREIGN_ANSWER_CHARS_MAX: usize = 200;

pub struct Client {
    http: reqwest::Client,
    graphql: Url,
    token: TokenSource,
    tls: Arc<ClientConfig>,
}

impl Client {
    pub fn new(args: &ConnectionArgs) -> Result<Self> {
        Self::patient(args, READ_TIMEOUT)
    }

    /// For operations that the server may take long to answer.
    pub fn patient(args: &ConnectionArgs, read_timeout: Duration) -> Result<Self> {
        let graphql = endpoint(&args.server)?;
        let token = TokenSource::find(args.token_file.as_deref(), std::env::var("TIDEGATE_TOKEN").ok())?;
        let tls = client_config(args.ca_file.as_deref())?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(ClientConfig::clone(&tls))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(read_timeout)
            // A redirect is not followed: the token is for this server.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("failed to set up the HTTP client")?;
        if graphql.scheme() == "http" && !is_loopback(&graphql) {
            tracing::warn!("{} is not encrypted: anybody on the way can read the token", args.server);
        }
        Ok(Self { http, graphql, token, tls })
    }

    /// The `data` of one operation.
    pub async fn query<T: DeserializeOwned>(&self, query: &str, variables: Value) -> Result<T> {
        let sent = self
            .http
            .post(self.graphql.clone())
            .header(AUTHORIZATION, bearer(&self.token()?)?)
            .json(&json!({"query": query, "variables": variables}))
            .send()
            .await
            .map_err(|error| unreachable::explain(&self.graphql, &error))?;
        let status = sent.status();
        let body = read(sent).await.context("the answer broke off")?;
        let Ok(answer) = serde_json::from_slice::<Answer<T>>(&body) else {
            let text: String = String::from_utf8_lossy(&body).chars().take(FOREIGN_ANSWER_CHARS_MAX).collect();
            bail!("{} does not answer as Tidegate does (HTTP {status}): {}", self.graphql, text.escape_debug());
        };
        match (answer.errors.into_iter().next(), answer.data) {
            (Some(refusal), _) => Err(refusal.into()),
            (None, Some(data)) => Ok(data),
            (None, None) => bail!("{} answered without data (HTTP {status})", self.graphql),
        }
    }

    /// The JSON that a path of the server answers a POST with.
    pub async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let url = self.beside_graphql(path)?;
        let request = self.http.post(url.clone()).header(AUTHORIZATION, bearer(&self.token()?)?);
        let sent = request.send().await.map_err(|error| unreachable::explain(&self.graphql, &error))?;
        let status = sent.status();
        let body = read(sent).await.context("the answer broke off")?;
        if !status.is_success() {
            let text: String = String::from_utf8_lossy(&body).chars().take(FOREIGN_ANSWER_CHARS_MAX * 4).collect();
            bail!("{}", text.trim());
        }
        serde_json::from_slice(&body).with_context(|| format!("{url} does not answer as Tidegate does"))
    }

    fn beside_graphql(&self, path: &str) -> Result<Url> {
        self.graphql.join(path).with_context(|| format!("`{path}` is no path of a server"))
    }

    pub fn token(&self) -> Result<String> {
        self.token.read()
    }

    pub fn tls(&self) -> Arc<ClientConfig> {
        self.tls.clone()
    }

    /// The same address, for a WebSocket.
    pub fn socket_url(&self) -> Url {
        let mut url = self.graphql.clone();
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).expect("both are schemes with a host");
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

async fn read(mut response: Response) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            bail!("it has more than {ANSWER_BYTES_MAX} bytes: ask for less with --limit");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).context("the token does not fit into a header")?;
    value.set_sensitive(true);
    Ok(value)
}

/// `https://host/prefix` → `https://host/prefix/graphql`.
fn endpoint(server: &str) -> Result<Url> {
    let expected = "write it as `http://127.0.0.1:7300` or `https://tidegate.example.com`";
    let mut url =
        Url::parse(server).map_err(|reason| anyhow!("--server `{server}` is not a URL ({reason}): {expected}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        bail!("--server `{server}` is not an http or https URL: {expected}");
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
            ("", None),
        ] {
            assert_eq!(endpoint(server).ok().as_ref().map(Url::as_str), expected, "{server}");
        }
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
