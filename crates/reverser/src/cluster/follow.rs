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
use crate::repeats::Repeats;

/// The server ends a watch after about this time; resuming costs nothing.
const WATCH_SECONDS: u32 = 290;
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

/// What a follower may be told from outside.
#[derive(Clone, Default, Debug)]
pub struct Cue(Arc<Cues>);

#[derive(Default, Debug)]
struct Cues {
    relist: Notify,
    retry: Notify,
}

impl Cue {
    /// Somebody needs the whole list again.
    pub fn relist(&self) {
        self.0.relist.notify_one();
    }

    /// The API is said to answer: a follower that waits after failures, or is
    /// about to, asks at once.
    pub fn retry(&self) {
        self.0.retry.notify_one();
    }
}

pub struct Follow {
    pub api: Api,
    /// The collection's path.
    pub path: String,
    pub cue: Cue,
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
            () = self.cue.0.relist.notified() => None,
        }
    }

    /// Who says that the API answers may be a moment early: the waits that
    /// follow are the first ones again.
    async fn wait(&self, machine: &mut Machine) {
        tokio::select! {
            () = sleep(machine.backoff(rand::random())) => {}
            () = self.cue.0.retry.notified() => machine.succeeded(),
        }
    }
}

/// Never ends by itself; dropping it ends the watch.
pub async fn follow(follow: Follow, consumer: &mut impl Consumer) {
    let mut machine = Machine::default();
    let (mut has_failed, mut repeats) = (false, Repeats::default());
    loop {
        let (ask, means) = machine.ask();
        if means == Means::Restart {
            consumer.restart();
        }
        match once(&follow, &ask, &mut machine, consumer).await {
            Ok(Answered::Interrupted) => machine.relist(),
            Ok(Answered::Whole) => {
                machine.succeeded();
                repeats.end();
                if std::mem::take(&mut has_failed) {
                    consumer.recovered().await;
                }
            }
            Err(error) => {
                let failure = classify(&error, &ask);
                machine.hear(Said::Failed(failure));
                if failure == Failure::TooLarge {
                    tracing::info!(path = follow.path, "a page is too large, asking for smaller ones");
                }
                if failure == Failure::Other {
                    // A server that is busy for a moment has not failed.
                    let is_busy = error.status() == Some(StatusCode::TOO_MANY_REQUESTS);
                    if has_failed || !is_busy {
                        tell_failure(&follow.path, &error, &mut repeats, consumer).await;
                    }
                    has_failed = true;
                    follow.wait(&mut machine).await;
                }
            }
        }
    }
}

async fn tell_failure(path: &str, error: &ApiError, repeats: &mut Repeats, consumer: &mut impl Consumer) {
    let told = error.told();
    if repeats.is_new(&told) {
        tracing::warn!(path, error = told, "watch failed, trying again");
    }
    consumer.failed(error).await;
}

fn classify(error: &ApiError, ask: &Ask) -> Failure {
    // One object that is too large is a failure like any other.
    let is_page = matches!(ask, Ask::Page { objects: 2.., .. });
    if is_page && matches!(error, ApiError::TooLarge { .. }) {
        return Failure::TooLarge;
    }
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
        Ask::Page { token, objects } => page(follow, token.as_deref(), *objects, machine, consumer).await,
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
    objects: u32,
    machine: &mut Machine,
    consumer: &mut impl Consumer,
) -> Result<Answered, ApiError> {
    let mut path = format!("{}?limit={objects}", follow.path);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use tokio::time::Instant;

    use super::*;
    use crate::cluster::Access;

    /// Five objects of 30 MiB, in pages of as many as are asked for.
    fn bulky(asked: Arc<std::sync::Mutex<Vec<usize>>>) -> Api {
        let answer = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let number = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
            let (limit, from) = (number("limit="), number("continue=").unwrap_or(0));
            let status = if limit.is_none() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            let items = (from..5).take(limit.unwrap_or(0));
            let items =
                items.map(|at| serde_json::json!({"metadata": {"name": at.to_string()}, "data": "x".repeat(30 << 20)}));
            let items: Vec<_> = items.collect();
            let next = from + items.len();
            let more = if next < 5 { next.to_string() } else { String::new() };
            asked.lock().unwrap().extend(limit);
            let list = serde_json::json!({"kind": "ThingList", "metadata": {"resourceVersion": "7", "continue": more}, "items": items});
            std::future::ready(Response::builder().status(status).body(Body::from(list.to_string().into_bytes())))
        });
        Api::new(kube::Client::new(answer, "default"), "https://test", Access::Fixed)
    }

    /// What was listed, until it is complete.
    #[derive(Default)]
    struct Names(Vec<String>, Arc<Notify>);

    impl Consumer for Names {
        fn restart(&mut self) {
            self.0.clear();
        }
        async fn listed(&mut self, object: Value) {
            self.0.push(object["metadata"]["name"].to_string());
        }
        async fn complete(&mut self) {
            assert_eq!(self.0.join(" "), r#""0" "1" "2" "3" "4""#);
            self.1.notify_one();
        }
        async fn changed(&mut self, _: Value) {}
        async fn gone(&mut self, _: Value) {}
        async fn failed(&mut self, _: &ApiError) {}
        async fn recovered(&mut self) {}
    }

    #[tokio::test]
    async fn pages_that_are_too_large_become_smaller() {
        let (asked, names) = (Arc::default(), Names::default());
        let (api, complete) = (bulky(Arc::clone(&asked)), names.1.clone());
        let mut names = names;
        let following = Follow { api, path: "/apis/a/v1/things".into(), cue: Cue::default() };
        tokio::select! {
            () = follow(following, &mut names) => {}
            () = complete.notified() => {}
        }
        assert_eq!(asked.lock().unwrap()[..8], [500, 62, 7, 1, 1, 1, 1, 1]);
    }

    /// An API that never answers anything else.
    fn unavailable(asked: Arc<AtomicUsize>) -> Api {
        let answer = tower::service_fn(move |_: Request<Body>| {
            asked.fetch_add(1, Ordering::Relaxed);
            let response = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).body(Body::empty());
            std::future::ready(response)
        });
        Api::new(kube::Client::new(answer, "default"), "https://test", Access::Fixed)
    }

    struct Nobody;

    impl Consumer for Nobody {
        fn restart(&mut self) {}
        async fn listed(&mut self, _: Value) {}
        async fn complete(&mut self) {}
        async fn changed(&mut self, _: Value) {}
        async fn gone(&mut self, _: Value) {}
        async fn failed(&mut self, _: &ApiError) {}
        async fn recovered(&mut self) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_cue_ends_a_wait_and_the_next_ones_are_short_again() {
        let (asked, cue) = (Arc::new(AtomicUsize::new(0)), Cue::default());
        let (api, path) = (unavailable(asked.clone()), "/apis/late.example.com/v1/things".to_owned());
        let following = Follow { api, path, cue: cue.clone() };
        let following = tokio::spawn(async move { follow(following, &mut Nobody).await });
        // 0.5 s, 1 s, 2 s, 4 s, 8 s, 16 s: the seventh wait has just begun.
        while asked.load(Ordering::Relaxed) < 7 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let told = Instant::now();
        cue.retry();
        for expected in [8, 9, 10] {
            while asked.load(Ordering::Relaxed) < expected {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        assert!(told.elapsed() <= Duration::from_millis(1_510), "{:?}", told.elapsed());
        following.abort();
    }
}
