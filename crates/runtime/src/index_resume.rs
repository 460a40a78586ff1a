//! A durable index at the start of a manager: its records are loaded, and a
//! preview of it works on what has changed since they were saved.
//!
//! Invariant: the index takes changes only after all its records, because a
//! record says who is due as of the records of all kinds. What came meanwhile
//! is kept, in order, and applied before the index is called filled.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::driver::AbortOnDrop;
use crate::index::Stage;
use crate::index_load::{Saved, Torn, load};
use crate::index_preview::Previewing;
use crate::index_reader::Batch;
use crate::indexer::{Followers, Held, Indexer, Subscriber};
use crate::unsaved::Unsaved;
use crate::{Durable, Kind, Touched};

/// What came while the records were loaded.
struct Meanwhile {
    preview: Option<Previewing>,
    batches: Vec<(usize, Batch)>,
    /// For those who subscribe later.
    answered: Touched,
}

impl Indexer {
    pub(crate) async fn resume(
        &mut self,
        index: Arc<dyn Durable>,
        rows_max: usize,
        kinds: &[Kind],
    ) -> (Held, Followers) {
        let mut held = Held::new(kinds);
        let Some(saved) = Saved::read(&*self.plane, &*index, kinds).await else {
            held.unsaved = Some(Unsaved::new(index, rows_max, kinds.to_vec(), None));
            return (held, self.follow(kinds, None));
        };
        let mut followers = self.follow(kinds, Some(&saved.position));
        let loading = tokio::spawn(load(self.plane.clone(), index.clone(), kinds.to_vec(), saved.clone()));
        let mut meanwhile = Meanwhile {
            preview: Previewing::new(&self.plane, &index, kinds, &saved),
            batches: Vec::new(),
            answered: Touched::of(Stage::Preview),
        };
        let loaded = self.work_ahead(kinds, loading, &mut followers, &mut meanwhile).await;
        let Meanwhile { preview, batches, .. } = meanwhile;
        held.preview = preview;
        let Some(Torn(torn)) = loaded else {
            // The list goes over what is there.
            held.preview.iter_mut().for_each(Previewing::close);
            held.unsaved = Some(Unsaved::new(index, rows_max, kinds.to_vec(), None));
            return (held, self.follow(kinds, None));
        };
        let mut unsaved = Unsaved::new(index.clone(), rows_max, kinds.to_vec(), Some(saved.position));
        if torn {
            let mut touched = Touched::default();
            index.recheck(&mut touched);
            unsaved.applied(0, None, touched.take_changed());
        }
        held.unsaved = Some(unsaved);
        held.is_loaded();
        let ahead = held.preview.as_ref().map_or(0, Previewing::changes);
        tracing::debug!(index = index.name(), changes_taken_ahead = ahead, "all records of the index are loaded");
        for (at, batch) in batches {
            // Whom it concerns the audit finds.
            self.absorb(&kinds[at], &mut held, at, batch);
        }
        (held, followers)
    }

    /// Until all records are loaded.
    async fn work_ahead(
        &mut self,
        kinds: &[Kind],
        mut loading: JoinHandle<Option<Torn>>,
        followers: &mut Followers,
        meanwhile: &mut Meanwhile,
    ) -> Option<Torn> {
        let _loading = AbortOnDrop(loading.abort_handle());
        loop {
            let is_open = meanwhile.preview.as_ref().is_some_and(Previewing::is_open);
            tokio::select! {
                biased;
                // A load that panicked has left a part.
                loaded = &mut loading => return loaded.unwrap_or_default(),
                Some(subscriber) = self.subscribing.recv() => self.join_ahead(subscriber, &meanwhile.answered).await,
                Some((at, batch)) = followers.batches.recv(), if is_open => {
                    self.take_ahead(&kinds[at], &batch, meanwhile).await;
                    meanwhile.batches.push((at, batch));
                }
            }
        }
    }

    async fn take_ahead(&mut self, kind: &Kind, batch: &Batch, meanwhile: &mut Meanwhile) {
        let Some(preview) = &mut meanwhile.preview else { return };
        let Batch::Events(events) = batch else {
            // The window has been exceeded: of a list, no more than its
            // beginning is kept here.
            return preview.close();
        };
        let touched = preview.take(kind, events).await;
        meanwhile.answered.extend(touched.keys().iter().cloned());
        self.tell(&touched).await;
    }

    /// The audit comes when the index is filled.
    async fn join_ahead(&mut self, subscriber: Subscriber, answered: &Touched) {
        let answered = answered.only(&subscriber.resource);
        if answered.is_empty() || subscriber.touches.send(answered).await.is_ok() {
            self.subscribers.push(subscriber);
        }
    }
}
