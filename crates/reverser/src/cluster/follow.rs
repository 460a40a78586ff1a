//! Carries a [`Machine`] out: asks, reads, tells a consumer.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::api::{Api, ApiError};
use super::lines::Lines;
use super::machine::{Ask, Failure, Machine, Means, Said};

/// The server ends a watch after about this time; resuming costs nothing.
const WATCH_SECONDS: u32 = 290;
const PAGE_OBJECTS: u32 = 500;
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Whoever wants to know what is in a collection.
pub trait Consumer: Send {
    /// A list begins: what was heard of an earlier, unfinished one is void.
    fn restart(&mut self);
    /// An object of the list that is being read.
    fn listed(&mut self, object: Value) -> impl Future<Output = ()> + Send;
    /// Everything that there is has been listed.
    fn complete(&mut self) -> impl Future<Output = ()> + Send;
    /// Added or modified, after the list.
    fn changed(&mut self, object: Value) -> impl Future<Output = ()> + Send;
    /// Deleted; its last state.
    fn gone(&mut self, object: Value) -> impl Future<Output = ()> + Send;
    /// It does not work right now, and goes on by itself.
    fn failed(&mut self, error: &ApiError) -> impl Future<Output = ()> + Send;
    /// It works again.
    fn recovered(&mut self) -> impl Future<Output = ()> + Send;
}

/// Asks a follower for the whole list again.
#[derive(Clone, Default, Debug)]
pub struct Relist(Arc<Notify>);

impl Relist {
    pub fn ask(&self) {
        self.0.notify_one();
    }
}

pub struct Follow {
    pub api: Api,
    /// The collection's path.
    pub path: String,
    pub relist: Relist,
}

#[derive(Deserialize)]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

/// How far a question got.
enum Answered {
    Whole,
    /// Somebody wants the list instead.
    Interrupted,
}

impl Follow {
    /// The server's part of it, unless somebody wants the list. The consumer's
    /// part is never interrupted: it has noted what it is about to tell.
    async fn unless_relisted<T>(&self, waiting: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            ready = waiting => Some(ready),
            () = self.relist.0.notified() => None,
        }
    }
}

/// Never ends by itself; dropping it ends the watch.
pub async fn follow(follow: Follow, consumer: &mut impl Consumer) {
    let mut machine = Machine::default();
    let mut has_failed = false;
    loop {
        let (ask, means) = machine.ask();
        if means == Means::Restart {
            consumer.restart();
        }
        match once(&follow, &ask, &mut machine, consumer).await {
            Ok(Answered::Interrupted) => machine.relist(),
            Ok(Answered::Whole) => {
                machine.succeeded();
                if std::mem::take(&mut has_failed) {
                    consumer.recovered().await;
                }
            }
            Err(error) => {
                let failure = classify(&error, &ask);
                machine.hear(Said::Failed(failure));
                if failure == Failure::Other {
                    has_failed = true;
                    tracing::warn!(path = follow.path, error = error.told(), "watch failed, trying again");
                    consumer.failed(&error).await;
                    sleep(machine.backoff(rand::random())).await;
                }
            }
        }
    }
}

fn classify(error: &ApiError, ask: &Ask) -> Failure {
    match (error.status(), ask) {
        (Some(StatusCode::GONE), _) => Failure::Expired,
        // 400 or 422 for `sendInitialEvents`, before it was known or with its gate off.
        (Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY), Ask::StreamList) => Failure::NoStreaming,
        _ => Failure::Other,
    }
}

async fn once(
    follow: &Follow,
    ask: &Ask,
    machine: &mut Machine,
    consumer: &mut impl Consumer,
) -> Result<Answered, ApiError> {
    match ask {
        Ask::Page { token } => page(follow, token.as_deref(), machine, consumer).await,
        Ask::StreamList => {
            let query = format!(
                "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds={WATCH_SECONDS}"
            );
            stream(follow, &query, machine, consumer).await
        }
        Ask::Watch { at } => {
            let at = super::path::escape(at);
            let query =
                format!("watch=true&allowWatchBookmarks=true&resourceVersion={at}&timeoutSeconds={WATCH_SECONDS}");
            stream(follow, &query, machine, consumer).await
        }
    }
}

async fn page(
    follow: &Follow,
    token: Option<&str>,
    machine: &mut Machine,
    consumer: &mut impl Consumer,
) -> Result<Answered, ApiError> {
    let mut path = format!("{}?limit={PAGE_OBJECTS}", follow.path);
    if let Some(token) = token {
        path.push_str(&format!("&continue={}", super::path::escape(token)));
    }
    let Some(list) = follow.unless_relisted(follow.api.get(&path)).await else { return Ok(Answered::Interrupted) };
    let mut list = list?;
    // Items of a list leave these two to the list.
    let api_version = list["apiVersion"].take();
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
    if let Value::Array(items) = list["items"].take() {
        for mut item in items {
            if item.get("kind").is_none() {
                item["apiVersion"] = api_version.clone();
                item["kind"] = kind.clone().into();
            }
            consumer.listed(item).await;
        }
    }
    let text = |field: &str| list["metadata"][field].as_str().unwrap_or_default().to_owned();
    let token = Some(text("continue")).filter(|token| !token.is_empty());
    if machine.hear(Said::Page { version: text("resourceVersion"), token }) == Means::Complete {
        consumer.complete().await;
    }
    Ok(Answered::Whole)
}

async fn stream(
    follow: &Follow,
    query: &str,
    machine: &mut Machine,
    consumer: &mut impl Consumer,
) -> Result<Answered, ApiError> {
    let broken = |error: Box<dyn std::error::Error + Send + Sync>| ApiError::Failed {
        method: http::Method::GET,
        path: follow.path.clone(),
        source: error,
    };
    let path = format!("{}?{query}", follow.path);
    let Some(body) = follow.unless_relisted(follow.api.open(&path)).await else { return Ok(Answered::Interrupted) };
    let mut lines = Lines::new(body?);
    let mut is_first = true;
    loop {
        let Some(line) = follow.unless_relisted(lines.next()).await else { return Ok(Answered::Interrupted) };
        let Some(line) = line.map_err(|error| broken(error.into()))? else { break };
        let event: WireEvent = serde_json::from_slice(&line).map_err(|error| broken(error.into()))?;
        if event.kind == "ERROR" {
            return Err(error_event(follow, &event.object));
        }
        if std::mem::take(&mut is_first) {
            machine.succeeded();
            consumer.recovered().await;
        }
        deliver(event, machine, consumer).await;
    }
    machine.hear(Said::Closed);
    Ok(Answered::Whole)
}

async fn deliver(event: WireEvent, machine: &mut Machine, consumer: &mut impl Consumer) {
    let metadata = &event.object["metadata"];
    let version = metadata["resourceVersion"].as_str().unwrap_or_default().to_owned();
    if event.kind == "BOOKMARK" {
        let ends_list = metadata["annotations"][INITIAL_END] == "true";
        if machine.hear(Said::Bookmark { version, ends_list }) == Means::Complete {
            consumer.complete().await;
        }
        return;
    }
    let is_watching = machine.is_watching();
    match (event.kind.as_str(), is_watching) {
        ("DELETED", true) => consumer.gone(event.object).await,
        ("DELETED", false) => {}
        (_, true) => consumer.changed(event.object).await,
        (_, false) => consumer.listed(event.object).await,
    }
    machine.hear(Said::Event { version });
}

fn error_event(follow: &Follow, status: &Value) -> ApiError {
    let code = status["code"].as_u64().and_then(|code| StatusCode::from_u16(code.try_into().ok()?).ok());
    ApiError::Refused {
        method: http::Method::GET,
        path: follow.path.clone(),
        status: code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        message: status["message"].as_str().unwrap_or("the watch ended with an error").to_owned(),
    }
}
