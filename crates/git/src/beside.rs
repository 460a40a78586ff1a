//! Work on a thread of its own, for somebody who waits, within a time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::error::GitError;

/// How long it is worth going on.
pub(crate) struct Patience {
    pub time_max: Duration,
    since: Instant,
    /// Gone when nobody waits any more.
    waiting: Weak<()>,
}

impl Patience {
    pub fn is_over(&self) -> bool {
        self.waiting.strong_count() == 0 || self.since.elapsed() >= self.time_max
    }
}

/// `work` looks at its patience, and ends soon when that is over.
pub(crate) async fn beside<R: Send + 'static>(
    time_max: Duration,
    work: impl FnOnce(Patience) -> Result<R, GitError> + Send + 'static,
) -> Result<R, GitError> {
    let waiting = Arc::new(());
    let patience = Patience { time_max, since: Instant::now(), waiting: Arc::downgrade(&waiting) };
    let done = tokio::task::spawn_blocking(move || work(patience)).await;
    drop(waiting);
    done.map_err(|error| GitError::Stopped(error.to_string()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_ends_with_its_time_and_with_whoever_waits() {
        assert!(!beside(Duration::MAX, |patience| Ok(patience.is_over())).await.unwrap());
        assert!(beside(Duration::ZERO, |patience| Ok(patience.is_over())).await.unwrap());
        let (started, begun) = tokio::sync::oneshot::channel();
        let (ended, seen) = tokio::sync::oneshot::channel();
        let work = beside(Duration::from_secs(3600), move |patience| {
            let _ = started.send(());
            while !patience.is_over() {
                std::thread::yield_now();
            }
            let _ = ended.send(());
            Ok(())
        });
        tokio::select! {
            _ = work => panic!("it ends by itself"),
            begun = begun => begun.unwrap(),
        }
        seen.await.unwrap();
    }
}
