//! Objects whose content was too much to keep, read again a few at a time:
//! one after the other, each would take as long as its answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::mirror::ResourceKey;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::reader::{ReadError, Reader};
use crate::change::State;

/// Each is an object of 1.5 MiB at most, so that they are 48 MiB at most.
const READS_AHEAD_MAX: usize = 32;

type Read = Result<Option<State>, ReadError>;

/// For a thread that may wait.
pub(super) struct Again {
    reader: Arc<dyn Reader>,
    runtime: Handle,
    ahead: RefCell<Ahead>,
}

/// What is on its way, in the order in which it will be asked for.
#[derive(Default)]
struct Ahead {
    reads: Option<mpsc::Receiver<(ResourceKey, JoinHandle<Read>)>>,
    /// How often each is still to come.
    announced: HashMap<ResourceKey, usize>,
}

impl Again {
    pub fn new(reader: Arc<dyn Reader>, runtime: Handle) -> Self {
        Self { reader, runtime, ahead: RefCell::default() }
    }

    /// What will be asked for, in this order; some of it may not be.
    pub fn announce(&self, keys: Vec<ResourceKey>) {
        let mut announced = HashMap::with_capacity(keys.len());
        keys.iter().for_each(|key| *announced.entry(key.clone()).or_default() += 1);
        let (sender, reads) = mpsc::channel(READS_AHEAD_MAX);
        let (reader, runtime) = (self.reader.clone(), self.runtime.clone());
        self.runtime.spawn(async move {
            for key in keys {
                // A place first: what is asked for has one to wait in.
                let Ok(place) = sender.reserve().await else { return };
                let (reader, of) = (reader.clone(), key.clone());
                place.send((key, runtime.spawn(async move { reader.read(&of).await })));
            }
        });
        *self.ahead.borrow_mut() = Ahead { reads: Some(reads), announced };
    }

    pub fn read(&self, key: &ResourceKey) -> Read {
        match self.ahead.borrow_mut().take(key) {
            Some(reading) => self.runtime.block_on(reading).unwrap_or_else(|ended| {
                let message = format!("the task that reads it ended: {ended}");
                Err(ReadError { key: key.clone(), message })
            }),
            None => self.runtime.block_on(self.reader.read(key)),
        }
    }
}

impl Ahead {
    fn take(&mut self, key: &ResourceKey) -> Option<JoinHandle<Read>> {
        while self.announced.contains_key(key) {
            let (next, reading) = self.reads.as_mut()?.blocking_recv()?;
            if let Some(count) = self.announced.get_mut(&next) {
                *count -= 1;
                if *count == 0 {
                    self.announced.remove(&next);
                }
            }
            if next == *key {
                return Some(reading);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Barrier;

    use super::*;
    use crate::branch::ReadFuture;

    fn key(name: &str) -> ResourceKey {
        ResourceKey::new("", "v1", "configmaps", Some("n"), name)
    }

    /// Answers when two are asked for at once, and notes the names.
    struct Pairs(Barrier, Mutex<Vec<String>>);

    impl Reader for Pairs {
        fn read<'r>(&'r self, key: &'r ResourceKey) -> ReadFuture<'r> {
            Box::pin(async move {
                self.1.lock().unwrap().push(key.name.to_string());
                self.0.wait().await;
                Ok(None)
            })
        }
    }

    #[tokio::test]
    async fn several_are_on_their_way_and_what_is_not_asked_for_is_passed_over() {
        let reader = Arc::new(Pairs(Barrier::new(2), Mutex::default()));
        let (again, runtime) = (reader.clone(), Handle::current());
        tokio::task::spawn_blocking(move || {
            let again = Again::new(again, runtime);
            again.announce(["a", "b", "a", "c"].map(key).to_vec());
            for name in ["a", "a", "c"] {
                assert!(again.read(&key(name)).is_ok());
            }
        })
        .await
        .unwrap();
        let mut read = reader.1.lock().unwrap().clone();
        read.sort();
        assert_eq!(read, ["a", "a", "b", "c"], "each once");
    }

    struct Nothing;

    impl Reader for Nothing {
        fn read<'r>(&'r self, _: &'r ResourceKey) -> ReadFuture<'r> {
            Box::pin(async { Ok(None) })
        }
    }

    #[tokio::test]
    async fn what_was_not_announced_is_read_all_the_same() {
        let runtime = Handle::current();
        let read = tokio::task::spawn_blocking(move || {
            let again = Again::new(Arc::new(Nothing), runtime);
            let unannounced = again.read(&key("a"));
            again.announce(vec![key("b")]);
            [unannounced, again.read(&key("a")), again.read(&key("b")), again.read(&key("b"))]
        });
        assert!(read.await.unwrap().iter().all(|read| matches!(read, Ok(None))));
    }
}
