//! Discovery at the start, when a CRD or an APIService changes, and now and
//! then in case something was missed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::state::Msg;
use crate::claims::{Catalog, TypeId};
use crate::cluster::{Api, ApiError, Consumer, Follow, Relist, collection, discover, follow, keep_defined};

/// A CRD is served a moment after it is there, and an API server under load
/// takes longer: look again after these milliseconds, from the last change on.
const SETTLE_MS: [u64; 9] = [50, 50, 100, 200, 200, 400, 1_000, 2_000, 4_000];
const RETRY: Duration = Duration::from_secs(2);
/// How soon an API that did not answer is asked again.
const PARTIAL_RETRY: Duration = Duration::from_secs(10);

pub(super) async fn keep_discovering(api: Api, refresh: Duration, to: mpsc::Sender<Msg>) {
    let changed = Arc::new(Notify::new());
    let definitions = TypeId::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let services = TypeId::new("apiregistration.k8s.io", "v1", "apiservices");
    let (mut crds, mut apis) = (Ping(changed.clone()), Ping(changed.clone()));
    tokio::join!(
        ask(&api, refresh, &changed, &to),
        follow(Follow { api: api.clone(), path: collection(&definitions, None), relist: Relist::default() }, &mut crds),
        follow(Follow { api: api.clone(), path: collection(&services, None), relist: Relist::default() }, &mut apis),
    );
}

async fn ask(api: &Api, refresh: Duration, changed: &Notify, to: &mpsc::Sender<Msg>) {
    let mut known: Option<Catalog> = None;
    loop {
        let next = match look(api, &mut known, to).await {
            Ok(Looked::Whole) => refresh,
            Ok(Looked::Partial) => refresh.min(PARTIAL_RETRY),
            Err(error) => {
                tracing::warn!(error = error.told(), "discovery failed; what was known stays in force");
                sleep(RETRY).await;
                continue;
            }
        };
        if timeout(next, changed.notified()).await.is_ok() {
            settle(api, &mut known, changed, to).await;
        }
    }
}

/// Looks again until it has been quiet for a while; each change begins anew.
async fn settle(api: &Api, known: &mut Option<Catalog>, changed: &Notify, to: &mpsc::Sender<Msg>) {
    let mut waits = SETTLE_MS.into_iter();
    while let Some(wait) = waits.next().map(Duration::from_millis) {
        sleep(wait).await;
        // Should it fail, the next round tells of it.
        let _ = look(api, known, to).await;
        // Without waiting: whether there was one meanwhile.
        if timeout(Duration::ZERO, changed.notified()).await.is_ok() {
            waits = SETTLE_MS.into_iter();
        }
    }
}

enum Looked {
    Whole,
    /// Something did not answer, or is not served yet.
    Partial,
}

async fn look(api: &Api, known: &mut Option<Catalog>, to: &mpsc::Sender<Msg>) -> Result<Looked, ApiError> {
    let mut found = discover(api).await?;
    if let Some(before) = known {
        keep_defined(api, before, &mut found).await;
    }
    *known = Some(found.catalog.clone());
    let looked = if found.failed.is_empty() { Looked::Whole } else { Looked::Partial };
    let _ = to.send(Msg::Discovered(found)).await;
    Ok(looked)
}

/// Tells that something changed, not what.
struct Ping(Arc<Notify>);

impl Consumer for Ping {
    fn restart(&mut self) {}

    async fn listed(&mut self, _: Value) {}

    async fn complete(&mut self) {
        self.0.notify_one();
    }

    async fn changed(&mut self, _: Value) {
        self.0.notify_one();
    }

    async fn gone(&mut self, _: Value) {
        self.0.notify_one();
    }

    async fn failed(&mut self, _: &ApiError) {}

    async fn recovered(&mut self) {}
}
