//! Discovery at the start, when a CRD or an APIService changes, and now and
//! then in case something was missed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::answers::Services;
use super::state::Msg;
use crate::backoff::Backoff;
use crate::claims::{Catalog, TypeId};
use crate::cluster::{Api, ApiError, Consumer, Cue, Follow, collection, discover, follow, keep_defined};
use crate::repeats::Repeats;

/// A CRD is served a moment after it is there, and an API server under load
/// takes longer: look again after these milliseconds, from the last change on.
const SETTLE_MS: [u64; 9] = [50, 50, 100, 200, 200, 400, 1_000, 2_000, 4_000];
/// After a request that failed: soon, because nothing is watched before the
/// first answer, and then as often as a server that starts or is busy bears.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How soon an API that did not answer is asked again.
const PARTIAL_RETRY: Duration = Duration::from_secs(10);

pub(super) async fn keep_discovering(api: Api, refresh: Duration, to: mpsc::Sender<Msg>) {
    let changed = Arc::new(Notify::new());
    let definitions = TypeId::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let services = TypeId::new("apiregistration.k8s.io", "v1", "apiservices");
    let (mut crds, mut apis) = (Ping(changed.clone()), Services::new(changed.clone(), to.clone()));
    tokio::join!(
        ask(&api, refresh, &changed, &to),
        follow(Follow { api: api.clone(), path: collection(&definitions, None), cue: Cue::default() }, &mut crds),
        follow(Follow { api: api.clone(), path: collection(&services, None), cue: Cue::default() }, &mut apis),
    );
}

async fn ask(api: &Api, refresh: Duration, changed: &Notify, to: &mpsc::Sender<Msg>) {
    let (mut known, mut backoff, mut repeats) = (None, Backoff::new(RETRY_MIN, RETRY_MAX), Repeats::default());
    loop {
        let looked = look(api, &mut known, to).await;
        if looked.is_ok() {
            backoff.reset();
            repeats.end();
        }
        let next = match looked {
            Ok(Looked::Whole) => refresh,
            Ok(Looked::Partial) => refresh.min(PARTIAL_RETRY),
            Err(error) => {
                let error = error.told();
                if repeats.is_new(&error) {
                    tracing::warn!(error, "discovery failed; what was known stays in force");
                }
                backoff.next(rand::random())
            }
        };
        if timeout(next, changed.notified()).await.is_ok() {
            settle(api, &mut known, changed, to).await;
        }
    }
}

/// Looks again until it has been quiet for a while.
async fn settle(api: &Api, known: &mut Option<Catalog>, changed: &Notify, to: &mpsc::Sender<Msg>) {
    let mut settling = Settling::default();
    while settling.is_due(changed).await {
        // Should it fail, the next round tells of it.
        let _ = look(api, known, to).await;
    }
}

/// The waits between the looks that follow a change.
struct Settling(std::slice::Iter<'static, u64>);

impl Default for Settling {
    fn default() -> Self {
        Self(SETTLE_MS.iter())
    }
}

impl Settling {
    /// Waits for the next look; `false` if it has been quiet for long enough.
    ///
    /// Each change begins anew, in the middle of a wait too: the long waits at
    /// the end are for what changed long ago. The first wait always passes
    /// whole, so that any number of changes makes a look every 50 ms at most,
    /// and none of them puts it off.
    async fn is_due(&mut self, changed: &Notify) -> bool {
        let Some(wait) = self.next() else { return false };
        if timeout(wait, changed.notified()).await.is_ok() {
            *self = Self::default();
            sleep(self.next().unwrap_or_default()).await;
        }
        true
    }

    fn next(&mut self) -> Option<Duration> {
        self.0.next().copied().map(Duration::from_millis)
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

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// The milliseconds of the looks, with changes at these.
    async fn looks(changes: Vec<u64>) -> Vec<u64> {
        let (changed, started) = (Arc::new(Notify::new()), Instant::now());
        let tell = changed.clone();
        let telling = tokio::spawn(async move {
            for at in changes {
                tokio::time::sleep_until(started + Duration::from_millis(at)).await;
                tell.notify_one();
            }
        });
        let (mut settling, mut looks) = (Settling::default(), Vec::new());
        while settling.is_due(&changed).await {
            looks.push(started.elapsed().as_millis() as u64);
        }
        telling.abort();
        looks
    }

    #[tokio::test(start_paused = true)]
    async fn looks_become_rare_when_nothing_changes() {
        assert_eq!(looks(vec![]).await, [50, 100, 200, 400, 600, 1_000, 2_000, 4_000, 8_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_in_the_longest_wait_is_looked_at_soon() {
        let looks = looks(vec![4_500]).await;
        assert_eq!(looks[7..10], [4_000, 4_550, 4_600], "and the looks begin anew");
        assert_eq!(looks.last(), Some(&12_500));
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_end_neither_hold_up_a_look_nor_make_more_of_them() {
        let looks = looks((1..=1_000).map(|at| at * 3).collect()).await;
        let during: Vec<_> = looks.iter().take_while(|at| **at <= 3_000).collect();
        assert!((50..=60).contains(&during.len()), "{during:?}");
        let is_spaced = |pair: &[&u64]| (50..=60).contains(&(pair[1] - pair[0]));
        assert!(during.windows(2).all(is_spaced), "{during:?}");
    }
}
