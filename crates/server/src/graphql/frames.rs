//! Frames that watchers share.
//!
//! Subscriptions with the same kind, selection and id receive the same bytes
//! for an event. They hold one number; the event keeps the frame under it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::selection::Selection;

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FrameKey {
    pub subscription_id: Box<str>,
    pub response_key: Box<str>,
    pub api_version: Arc<str>,
    pub kind: Box<str>,
    pub selection: Selection,
}

/// The numbers in use. A number is never given to a second key.
#[derive(Default)]
pub struct FrameIds {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    known: HashMap<FrameKey, Weak<FrameId>>,
}

pub struct FrameId {
    number: u64,
    key: FrameKey,
    ids: Weak<FrameIds>,
}

/// Each frame id has this many numbers, one for each way an event can reach a
/// filtered watcher.
const NUMBERS_PER_ID: u64 = 4;

impl FrameIds {
    pub fn get(self: &Arc<Self>, key: FrameKey) -> Arc<FrameId> {
        let mut inner = self.inner.lock().expect("no panic under this lock");
        if let Some(found) = inner.known.get(&key).and_then(Weak::upgrade) {
            return found;
        }
        inner.next += NUMBERS_PER_ID;
        let id = Arc::new(FrameId { number: inner.next, key: key.clone(), ids: Arc::downgrade(self) });
        inner.known.insert(key, Arc::downgrade(&id));
        id
    }
}

impl FrameId {
    pub fn number(&self, change: tidegate_model::EventType) -> u64 {
        use tidegate_model::EventType::{Added, Deleted, Modified};
        self.number
            + match change {
                Added => 0,
                Modified => 1,
                Deleted => 2,
            }
    }
}

impl Drop for FrameId {
    fn drop(&mut self) {
        let Some(ids) = self.ids.upgrade() else { return };
        let mut inner = ids.inner.lock().expect("no panic under this lock");
        // A successor with the same key may have been made meanwhile.
        if inner.known.get(&self.key).is_some_and(|known| known.strong_count() == 0) {
            inner.known.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_subscriptions_share_and_numbers_are_not_reused() {
        let ids = Arc::new(FrameIds::default());
        let key = |id: &str| FrameKey {
            subscription_id: id.into(),
            response_key: "watchProducts".into(),
            api_version: "v1".into(),
            kind: "Product".into(),
            selection: Selection { type_name: "ProductWatchEvent".into(), fields: Vec::new() },
        };
        let first = ids.get(key("1"));
        assert_eq!(first.number, ids.get(key("1")).number);
        assert_ne!(first.number, ids.get(key("2")).number);
        let number = first.number;
        drop(first);
        assert_ne!(ids.get(key("1")).number, number);
        assert_eq!(ids.inner.lock().unwrap().known.len(), 0);
    }
}
