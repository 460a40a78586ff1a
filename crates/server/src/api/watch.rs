//! Watches that end when their caller may no longer watch.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tidegate_model::ResourceVersion;
use tidegate_store::{Start, WatchItem, Watcher};
use tokio::sync::watch;

use super::Api;
use super::error::{ApiError, Code};
use super::kind_ref::KindRef;
use super::kinds::KindsInForce;
use super::read::{attributes, selection};
use crate::identity::{Attributes, AuthError, Identities, Session, Verb};

#[derive(Clone, Default, Debug)]
pub struct WatchQuery {
    pub namespace: Option<String>,
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
    pub resource_version: Option<String>,
    pub send_initial_events: bool,
}

impl WatchQuery {
    fn start(&self) -> Result<Start, ApiError> {
        let version = self.resource_version.as_deref().map(str::parse::<ResourceVersion>).transpose()?;
        Ok(match (version, self.send_initial_events) {
            // The current objects are at least as new as any version that was
            // ever handed out here.
            (_, true) => Start::Initial,
            (Some(version), false) => Start::After(version),
            (None, false) => Start::Now,
        })
    }
}

pub struct ApiWatch {
    pub kind: KindRef,
    watcher: Watcher,
    revoked: Pin<Box<dyn Future<Output = AuthError> + Send>>,
    kinds: watch::Receiver<Arc<KindsInForce>>,
    _counted: Counted,
}

impl Api {
    pub fn watch(&self, session: &Session, kind: KindRef, query: &WatchQuery) -> Result<ApiWatch, ApiError> {
        let selection = selection(
            &kind,
            query.namespace.as_deref(),
            query.label_selector.as_deref(),
            query.field_selector.as_deref(),
        )?;
        let attributes = attributes(Verb::Watch, &selection);
        self.authorize(session, &attributes)?;
        let start = query.start()?;
        let counted =
            Counted::take(&self.0.watch_counts, &session.identity().user, self.0.options.watches_per_identity_max)?;
        Ok(ApiWatch {
            kind,
            watcher: self.0.store.watch(selection, start)?,
            revoked: Box::pin(until_revoked(self.0.identities.clone(), session.clone(), attributes)),
            kinds: self.0.follower.subscribe(),
            _counted: counted,
        })
    }
}

impl ApiWatch {
    /// The next events, in order and never none of them; an error is the end.
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Vec<WatchItem>, ApiError> {
        loop {
            tokio::select! {
                biased;
                error = &mut self.revoked => return Err(error.into()),
                changed = self.kinds.changed() => self.check_kind(changed.is_ok())?,
                items = self.watcher.next() => return Ok(items?),
            }
        }
    }

    fn check_kind(&mut self, alive: bool) -> Result<(), ApiError> {
        let kinds = self.kinds.borrow_and_update();
        match (alive, self.kind.is_served(&kinds.set)) {
            (true, true) => Ok(()),
            (true, false) => Err(ApiError::kind_not_found(&kinds.set, &self.kind.api_version, &self.kind.kind.kind)),
            (false, _) => Err(ApiError::new(Code::Unavailable, "the server is shutting down")),
        }
    }
}

async fn until_revoked(identities: Arc<Identities>, session: Session, attributes: Attributes) -> AuthError {
    identities.until_revoked(&session, &attributes).await
}

/// Open watches by user.
#[derive(Default)]
pub(super) struct WatchCounts(Mutex<HashMap<Arc<str>, usize>>);

/// One open watch; gives its place back when it ends.
struct Counted {
    counts: Arc<WatchCounts>,
    user: Arc<str>,
}

impl Counted {
    fn take(counts: &Arc<WatchCounts>, user: &Arc<str>, limit: usize) -> Result<Self, ApiError> {
        let mut open = counts.0.lock().expect("no panic under this lock");
        let count = open.entry(user.clone()).or_default();
        if *count >= limit {
            let message =
                format!("{user} has {limit} watches open, which is the limit: close one, or watch a wider selection");
            return Err(ApiError::new(Code::RateLimited, message).with("limit", limit));
        }
        *count += 1;
        Ok(Self { counts: counts.clone(), user: user.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.counts.0.lock().expect("no panic under this lock");
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}
