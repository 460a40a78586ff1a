//! Every key of a kind, now and then: the resync, and what an index that
//! cannot tell what is stale asks for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::attended::interrupted;
use crate::clock::{Retry, spread};
use crate::driver::AbortOnDrop;
use crate::reader::Listed;
use crate::{Kind, Plane};

/// Pages on their way: about 100 bytes a key.
const PAGES_MAX: usize = 4;

pub(crate) struct Sweeps {
    plane: Arc<dyn Plane>,
    kind: Kind,
    every: Duration,
    due: Instant,
    running: Option<(mpsc::Receiver<Vec<Listed>>, AbortOnDrop)>,
}

impl Sweeps {
    pub fn new(plane: Arc<dyn Plane>, kind: Kind, every: Duration) -> Self {
        // A tenth more or less, so that controllers do not sweep together.
        let every = every.mul_f64(0.9 + 0.2 * spread(&kind.resource));
        let due = Instant::now() + every;
        Self { plane, kind, every, due, running: None }
    }

    /// Now; one that runs already is enough.
    pub fn begin(&mut self) {
        self.due = Instant::now() + self.every;
        if self.running.is_none() {
            let (sender, receiver) = mpsc::channel(PAGES_MAX);
            let task = tokio::spawn(sweep(self.plane.clone(), self.kind.clone(), sender));
            self.running = Some((receiver, AbortOnDrop(task.abort_handle())));
        }
    }

    /// The next keys; waits for the time of the next sweep. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<Listed>> {
        loop {
            match &mut self.running {
                Some((pages, _)) => match pages.recv().await {
                    Some(keys) => return Some(keys),
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

async fn sweep(plane: Arc<dyn Plane>, kind: Kind, pages: mpsc::Sender<Vec<Listed>>) {
    let (mut next, mut retry) = (None::<String>, Retry::new(&kind.resource));
    loop {
        match plane.list(&kind, next.as_deref()).await {
            Ok(page) => {
                let keys = page.items.iter().map(Listed::of).collect();
                if pages.send(keys).await.is_err() || page.next.is_none() {
                    return;
                }
                next = page.next;
            }
            Err(error) => {
                interrupted!(error, %kind, "a sweep is interrupted: it begins again");
                next = None;
                retry.wait().await;
            }
        }
    }
}
