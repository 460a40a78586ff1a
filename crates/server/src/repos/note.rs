//! What is in force, noted on each Repository object for whoever watches it.
//!
//! Invariant: the note follows the mark, which is changed with the objects. A
//! crash between the two is mended at the next start, which touches them all.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tidegate_store::StoreError;
use tokio::sync::Notify;

use super::id::RepositoryId;
use super::mark::{Mark, Tally};
use crate::api::Api;
use crate::api::error::{ApiError, Code};

/// Whose notes are due: each repository once, however often it changes.
#[derive(Default)]
pub struct Noter {
    due: Mutex<BTreeSet<RepositoryId>>,
    wake: Notify,
}

impl Noter {
    pub fn touch(&self, id: &RepositoryId) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        self.wake.notify_one();
    }

    /// Ends never; whoever spawned it does.
    pub async fn run(&self, api: &Api) {
        loop {
            self.wake.notified().await;
            let due = std::mem::take(&mut *self.due.lock().unwrap_or_else(PoisonError::into_inner));
            for id in due {
                match note(api, &id).await {
                    Ok(()) => {}
                    Err(error) if error.code == Code::NotFound => {}
                    // The next projection, or the next start, tries again.
                    Err(error) => tracing::warn!(repository = %id, %error, "failed to note what is in force"),
                }
            }
        }
    }
}

async fn note(api: &Api, id: &RepositoryId) -> Result<(), ApiError> {
    api.note_repository(&id.namespace, &id.name, |_| Ok(Some(json!({"inForce": in_force(api, id)?})))).await
}

/// A merge patch of the note: what is null goes.
fn in_force(api: &Api, id: &RepositoryId) -> Result<Value, StoreError> {
    let view = api.store().view();
    let Some(Mark { commit, path }) = Mark::read(&view, id)? else { return Ok(Value::Null) };
    let (objects, files) = Tally::read(&view, id)?.map(|tally| (tally.objects, tally.files)).unzip();
    let path = Some(path).filter(|path| !path.is_empty());
    Ok(json!({"commit": commit.as_str(), "path": path, "objects": objects, "files": files}))
}
