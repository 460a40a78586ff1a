//! One of the cluster's users at the API itself, for more writes than a
//! program started for each could make.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::Cluster;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// Writes the objects of one collection. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: reqwest::Client,
    server: String,
    path: String,
    api_version: String,
    kind: String,
    token: String,
}

impl Cluster {
    /// Of the ConfigMaps of a namespace.
    pub fn writer(&self, user: &str, namespace: &str) -> Writer {
        // Somebody else may have chosen one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(self.ca_pem().as_bytes()).expect("a certificate");
        let client = reqwest::Client::builder().tls_certs_only([ca]).build().expect("a client");
        let path = format!("api/v1/namespaces/{namespace}/configmaps");
        let (server, token) = (self.url(), self.token(user));
        Writer { client, server, path, api_version: "v1".into(), kind: "ConfigMap".into(), token }
    }
}

impl Writer {
    /// The same user at another collection.
    #[must_use]
    pub fn at(&self, path: &str, api_version: &str, kind: &str) -> Self {
        Self { path: path.into(), api_version: api_version.into(), kind: kind.into(), ..self.clone() }
    }

    /// The `data` of a ConfigMap, which is made if it is not there.
    pub async fn apply(&self, name: &str, data: &Value) {
        self.apply_fields(name, &json!({"data": data})).await;
    }

    /// All that an object has besides its name.
    pub async fn apply_fields(&self, name: &str, fields: &Value) {
        let mut body = fields.clone();
        body["apiVersion"] = self.api_version.as_str().into();
        body["kind"] = self.kind.as_str().into();
        body["metadata"] = json!({"name": name});
        let path = format!("{name}?fieldManager=writer&force=true");
        self.must(Method::PATCH, &path, APPLY, &body).await;
    }

    pub async fn merge(&self, name: &str, patch: &Value) {
        self.must(Method::PATCH, name, MERGE, patch).await;
    }

    /// Gone already is as good.
    pub async fn delete(&self, name: &str) {
        let answer = self.send(Method::DELETE, name, "application/json", &json!({})).await;
        let is_gone = answer.status().is_success() || answer.status() == StatusCode::NOT_FOUND;
        assert!(is_gone, "{}", answer.text().await.unwrap_or_default());
    }

    async fn must(&self, method: Method, path: &str, kind: &str, body: &Value) {
        let answer = self.send(method, path, kind, body).await;
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap_or_default());
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Response {
        let url = format!("{}/{}/{path}", self.server, self.path);
        let request = self.client.request(method, url).bearer_auth(&self.token);
        request.header("content-type", kind).body(body.to_string()).send().await.expect("the API server answers")
    }
}
