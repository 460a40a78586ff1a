//! How many branches are written and pushed at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A branch waits for a turn with what it has; nothing is lost meanwhile, and
/// what waits is bounded as it is while Git is away. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns {
    all: Arc<Semaphore>,
    repository: Arc<Semaphore>,
}

/// Held while a branch fetches, writes and pushes.
#[derive(Debug)]
pub struct Turn {
    _repository: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Turns {
    /// `all` is shared by every repository.
    pub fn new(all: Arc<Semaphore>, repository_max: usize) -> Self {
        Self { all, repository: Arc::new(Semaphore::new(repository_max)) }
    }

    /// First come, first served. The repository's own limit first, so that
    /// who waits for it holds nobody else up. `None` never happens: nobody
    /// closes these.
    pub async fn take(&self) -> Option<Turn> {
        let repository = self.repository.clone().acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Turn { _repository: repository, _all: all })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_repository_at_its_limit_holds_up_no_other() {
        let all = Arc::new(Semaphore::new(2));
        let (a, b) = (Turns::new(all.clone(), 1), Turns::new(all, 1));
        let is_free = async |turns: &Turns| timeout(Duration::from_secs(1), turns.take()).await.is_ok();
        let first = a.take().await;
        assert!(!is_free(&a).await && is_free(&b).await);
        let second = b.take().await;
        drop(first);
        assert!(is_free(&a).await);
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn all_of_them_have_a_limit() {
        let all = Arc::new(Semaphore::new(1));
        let (a, b) = (Turns::new(all.clone(), 5), Turns::new(all, 5));
        let first = a.take().await;
        let waits = timeout(Duration::from_secs(1), b.take()).await;
        assert!(waits.is_err());
        drop(first);
        assert!(b.take().await.is_some());
    }
}
