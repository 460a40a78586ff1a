//! Load on the API server, as people would make it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tidegate_testkit::cluster::Cluster;
use tokio::task::JoinSet;

/// Writes at once while a data set is made.
const FILLERS: usize = 16;
/// How the list through a watch ends.
const LIST_END: &[u8] = b"k8s.io/initial-events-end";

/// Cheap to clone.
#[derive(Clone)]
pub struct Api {
    client: reqwest::Client,
    url: Arc<str>,
    admin: Arc<str>,
}

impl Api {
    pub fn new(cluster: &Cluster, admin: String) -> anyhow::Result<Self> {
        let ca = reqwest::Certificate::from_pem(cluster.ca_pem().as_bytes())?;
        let client = reqwest::Client::builder().tls_certs_only([ca]).build()?;
        Ok(Self { client, url: cluster.url().into(), admin: admin.into() })
    }

    fn maps(&self, namespace: &str) -> String {
        format!("{}/api/v1/namespaces/{namespace}/configmaps", self.url)
    }

    /// ConfigMaps `n0`, `n1`, … of 1 KiB.
    pub async fn fill(&self, namespace: &str, count: usize) -> anyhow::Result<()> {
        let mut fillers = JoinSet::new();
        for first in 0..FILLERS {
            let (api, url) = (self.clone(), self.maps(namespace));
            fillers.spawn(async move {
                for at in (first..count).step_by(FILLERS) {
                    let request = api.client.post(&url).bearer_auth(&api.admin).json(&config_map(at));
                    checked(request).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(filled) = fillers.join_next().await {
            filled??;
        }
        Ok(())
    }

    /// The list, asked for as the operator does; the time of its last byte.
    pub async fn list(&self, namespace: &str, count: usize) -> anyhow::Result<Duration> {
        let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let started = Instant::now();
        let request = self.client.get(format!("{}?{query}", self.maps(namespace))).bearer_auth(&self.admin);
        let mut answer = checked(request).await?;
        let mut events = 0;
        let mut line = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                if piece.ends_with(b"\n") {
                    if memchr::memmem::find(&line, LIST_END).is_some() {
                        ensure!(events == count, "the list has {events} objects instead of {count}");
                        return Ok(started.elapsed());
                    }
                    events += 1;
                    line.clear();
                }
            }
        }
        anyhow::bail!("the list broke off")
    }

    /// Somebody changes an object; `number` tells this change from all others.
    pub async fn change(&self, token: &str, namespace: &str, at: usize, number: usize) -> anyhow::Result<()> {
        let patch = json!({"data": {"number": number.to_string()}}).to_string();
        let request = self.client.patch(format!("{}/n{at}", self.maps(namespace))).bearer_auth(token);
        checked(request.header("content-type", "application/merge-patch+json").body(patch)).await?;
        Ok(())
    }

    pub async fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.admin).json(object);
        checked(request).await.map(drop)
    }

    /// By server-side apply, which creates what is not there.
    pub async fn apply(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let request = self.client.patch(format!("{}{path}?fieldManager=bench", self.url)).bearer_auth(&self.admin);
        let request = request.header("content-type", "application/apply-patch+yaml").body(object.to_string());
        checked(request).await.map(drop)
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> anyhow::Result<()> {
        let request = self.client.patch(format!("{}{path}", self.url)).bearer_auth(&self.admin);
        let request = request.header("content-type", "application/merge-patch+json").body(patch.to_string());
        checked(request).await.map(drop)
    }

    pub async fn delete(&self, path: &str) -> anyhow::Result<()> {
        checked(self.client.delete(format!("{}{path}", self.url)).bearer_auth(&self.admin)).await.map(drop)
    }

    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.admin);
        Ok(serde_json::from_str(&checked(request).await?.text().await?)?)
    }
}

async fn checked(request: reqwest::RequestBuilder) -> anyhow::Result<reqwest::Response> {
    let answer = request.send().await.context("the API server does not answer")?;
    let status = answer.status();
    if !status.is_success() {
        anyhow::bail!("{status}: {}", answer.text().await.unwrap_or_default());
    }
    Ok(answer)
}

/// No two alike.
fn config_map(at: usize) -> Value {
    let text = format!("value {at} ").repeat(1024 / 10);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("n{at}"), "labels": {"app": "bench"}},
        "data": {"text": text, "number": "0"},
    })
}
