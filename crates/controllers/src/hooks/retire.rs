//! What is left of controllers that a hook no longer has: what they wrote into
//! their objects, then their own rows.
//!
//! Invariant: a key's rows go after its object shows nothing of the hook any
//! more, and the note of a controller after its last row. A crash leaves what
//! the next turn finds.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tidegate_model::ObjectKey;
use tidegate_runtime::{Client, Kind, Leftover, Manager, ReconcileError};

use super::clear::{Mark, clear};

/// Of one turn: other hooks wait for their own.
const TURN_MAX: Duration = Duration::from_secs(5);
/// Between two looks at the clock, and in one write: three rows a key.
const KEYS_AT_ONCE: usize = 500;
/// Status writes at once: they must not take the server from reconciles.
const WRITES_MAX: usize = 8;

/// A controller that a hook has, or had.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Past {
    pub controller: String,
    api_version: String,
    kind: String,
    plural: String,
}

impl Past {
    pub fn new(controller: &str, kind: &Kind) -> Self {
        Self {
            controller: controller.into(),
            api_version: kind.api_version.to_string(),
            kind: kind.kind.to_string(),
            plural: kind.resource.plural.to_string(),
        }
    }

    fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind, &self.plural)
    }

    /// In whatever version.
    pub fn has_kind(&self, kind: &Kind) -> bool {
        self.kind().resource == kind.resource
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retiring {
    Done,
    /// Another turn is needed.
    Goes,
}

pub struct Retirement {
    manager: Manager,
    client: Client,
}

impl Retirement {
    pub fn new(manager: Manager) -> Self {
        let client = manager.client();
        Self { manager, client }
    }

    /// The controllers of a hook of which something may be left.
    pub async fn past(&self, hook: &ObjectKey) -> Result<Vec<Past>, ReconcileError> {
        let note = self.client.note(super::CONTROLLER, hook).await?;
        Ok(note
            .map(|note| serde_json::from_slice(&note))
            .transpose()
            .map_err(ReconcileError::retryable)?
            .unwrap_or_default())
    }

    pub async fn save(&self, hook: &ObjectKey, past: &[Past]) -> Result<(), ReconcileError> {
        let note = match past {
            [] => None,
            past => Some(serde_json::to_vec(past).map_err(ReconcileError::retryable)?.into()),
        };
        Ok(self.client.set_note(super::CONTROLLER, hook, note).await?)
    }

    /// Takes away what those of `past` have left that are `gone`; they do not
    /// run any more. A hook that still has a controller of the same kind keeps
    /// its condition on the objects: that one sees to it.
    pub async fn retire(
        &self,
        hook: &ObjectKey,
        past: Vec<Past>,
        gone: impl Fn(&Past) -> bool,
    ) -> Result<Retiring, ReconcileError> {
        let until = Instant::now() + TURN_MAX;
        let (gone, kept): (Vec<Past>, Vec<Past>) = past.into_iter().partition(gone);
        let mut gone = gone.into_iter();
        while let Some(each) = gone.next() {
            let kind = each.kind();
            let is_marked = !kept.iter().any(|kept| kept.has_kind(&kind));
            let mark = is_marked.then(|| Mark::of_hook(&hook.name));
            if self.clean(&each, &kind, mark.as_ref(), until).await? == Retiring::Goes {
                return Ok(Retiring::Goes);
            }
            self.manager.forget(&each.controller).await?;
            let left: Vec<Past> = kept.iter().chain(gone.as_slice()).cloned().collect();
            self.save(hook, &left).await?;
        }
        Ok(Retiring::Done)
    }

    async fn clean(
        &self,
        past: &Past,
        kind: &Kind,
        mark: Option<&Mark>,
        until: Instant,
    ) -> Result<Retiring, ReconcileError> {
        loop {
            let left = self.client.leftovers(&past.controller, kind).await?;
            if left.is_empty() {
                return Ok(Retiring::Done);
            }
            for keys in left.chunks(KEYS_AT_ONCE) {
                let mut clearing = Vec::with_capacity(keys.len());
                keys.iter().for_each(|left| clearing.push(self.clear(past, kind, left, mark)));
                stream::iter(clearing).buffer_unordered(WRITES_MAX).try_collect::<()>().await?;
                self.client.drop_leftovers(&past.controller, keys).await?;
                if Instant::now() >= until {
                    return Ok(Retiring::Goes);
                }
            }
        }
    }

    async fn clear(
        &self,
        past: &Past,
        kind: &Kind,
        left: &Leftover,
        mark: Option<&Mark>,
    ) -> Result<(), ReconcileError> {
        let stalled = left.stalled.then(|| Mark::OfQuarantine(past.controller.clone()));
        let marks: Vec<Mark> = mark.cloned().into_iter().chain(stalled).collect();
        if marks.is_empty() {
            return Ok(());
        }
        clear(&self.client, kind, &left.key, &marks).await
    }
}
