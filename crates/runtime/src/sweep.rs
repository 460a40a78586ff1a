//! Every key of a kind, now and then: the resync, and what an index that
//! cannot tell what is stale asks for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::attended::interrupted;
use crate::clock::{Retry, spread};
use crate::driver::AbortOnDrop;
use crate::known_rows::KnownRows;
use crate::reader::{Feed, Listed};
use crate::{ApiError, Kind, Plane};

/// Pages on their way: about 100 bytes a key.
const PAGES_MAX: usize = 4;

pub(crate) struct Sweeps {
    plane: Arc<dyn Plane>,
    controller: Arc<str>,
    kind: Kind,
    every: Duration,
    due: Instant,
    running: Option<(mpsc::Receiver<Feed>, AbortOnDrop)>,
}

impl Sweeps {
    pub fn new(plane: Arc<dyn Plane>, controller: Arc<str>, kind: Kind, every: Duration) -> Self {
        // A tenth more or less, so that controllers do not sweep together.
        let every = every.mul_f64(0.9 + 0.2 * spread(&kind.resource));
        let due = Instant::now() + every;
        Self { plane, controller, kind, every, due, running: None }
    }

    /// Now; one that runs already is enough.
    pub fn begin(&mut self) {
        self.due = Instant::now() + self.every;
        if self.running.is_none() {
            let (sender, receiver) = mpsc::channel(PAGES_MAX);
            let task = tokio::spawn(sweep(self.plane.clone(), self.controller.clone(), self.kind.clone(), sender));
            self.running = Some((receiver, AbortOnDrop(task.abort_handle())));
        }
    }

    /// The next page; waits for the time of the next sweep. Cancel safe.
    pub async fn next(&mut self) -> Option<Feed> {
        loop {
            match &mut self.running {
                Some((pages, _)) => match pages.recv().await {
                    Some(swept) => return Some(swept),
                    None => self.running = None,
                },
                None => {
                    tokio::time::sleep_until(self.due).await;
                    self.begin();
                }
            }
        }
    }
}

async fn sweep(plane: Arc<dyn Plane>, controller: Arc<str>, kind: Kind, pages: mpsc::Sender<Feed>) {
    let mut retry = Retry::new(&kind.resource);
    while let Err(error) = pass(&plane, &controller, &kind, &pages).await {
        interrupted!(error, %kind, "a sweep is interrupted: it begins again");
        retry.wait().await;
    }
}

/// From the first page to the last, or until nobody takes them.
async fn pass(
    plane: &Arc<dyn Plane>,
    controller: &Arc<str>,
    kind: &Kind,
    pages: &mpsc::Sender<Feed>,
) -> Result<(), ApiError> {
    let mut known = KnownRows::new(plane.clone(), controller, kind);
    let mut next: Option<String> = None;
    loop {
        let page = plane.list(kind, next.as_deref()).await?;
        // What is gone is the reader's to tell.
        let fresh = known.compare(&page.items, false).await?.fresh;
        let keys = page.items.iter().map(Listed::of).collect();
        if pages.send(Feed::Swept { keys, fresh }).await.is_err() || page.next.is_none() {
            return Ok(());
        }
        next = page.next;
    }
}
