//! One of the cluster's users at the API itself, for more writes than a
//! program started for each could make.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::Cluster;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// Writes ConfigMaps of one namespace. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: reqwest::Client,
    url: String,
    token: String,
}

impl Cluster {
    pub fn writer(&self, user: &str, namespace: &str) -> Writer {
        // Somebody else may have chosen one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(self.ca_pem().as_bytes()).expect("a certificate");
        let client = reqwest::Client::builder().tls_certs_only([ca]).build().expect("a client");
        let url = format!("{}/api/v1/namespaces/{namespace}/configmaps", self.url());
        Writer { client, url, token: self.token(user) }
    }
}

impl Writer {
    /// Made if it is not there.
    pub async fn apply(&self, name: &str, data: &Value) {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
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
        let request = self.client.request(method, format!("{}/{path}", self.url)).bearer_auth(&self.token);
        request.header("content-type", kind).body(body.to_string()).send().await.expect("the API server answers")
    }
}
