//! Objects that others are stored as differences from, kept while they are read,
//! and how much work reading was.
//!
//! Without them each object is made from the beginning of its chain. So a chain
//! costs the square of its length, and a pack can have many.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gix_object::Kind;
use gix_odb::pack::cache::DecodeEntry;

/// Of each half; there are two for what is here, and two for a push.
const HALF_BYTES_MAX: usize = 16 << 20;
/// A larger object would drive out all others.
const OBJECT_BYTES_MAX: usize = HALF_BYTES_MAX / 4;
/// Beside its content: its key, and what the map and an allocation take.
const OBJECT_BYTES: usize = 100;

/// Differences that were applied, or looked up.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<AtomicU64>);

impl Steps {
    pub fn add(&self, steps: u64) {
        self.0.fetch_add(steps, Ordering::Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was used of late is in the young half. When that is full, it becomes
/// the old one, and what was old goes.
#[derive(Default)]
pub(crate) struct Bases {
    young: HashMap<(u32, u64), Base>,
    young_bytes: usize,
    old: HashMap<(u32, u64), Base>,
    steps: Steps,
}

struct Base {
    kind: Kind,
    content: Box<[u8]>,
    packed_bytes: usize,
}

impl Bases {
    pub fn new(steps: Steps) -> Self {
        Self { steps, ..Self::default() }
    }

    fn keep(&mut self, key: (u32, u64), base: Base) {
        self.young_bytes += base.content.len() + OBJECT_BYTES;
        if self.young_bytes > HALF_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = base.content.len() + OBJECT_BYTES;
        }
        self.young.insert(key, base);
    }
}

impl DecodeEntry for Bases {
    fn put(&mut self, pack_id: u32, offset: u64, data: &[u8], kind: Kind, packed_bytes: usize) {
        if data.len() <= OBJECT_BYTES_MAX {
            self.keep((pack_id, offset), Base { kind, content: data.into(), packed_bytes });
        }
    }

    /// Asked for each difference, until there is an answer.
    fn get(&mut self, pack_id: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        self.steps.add(1);
        let key = (pack_id, offset);
        if let Some(base) = self.old.remove(&key) {
            self.keep(key, base);
        }
        let base = self.young.get(&key)?;
        out.clear();
        out.extend_from_slice(&base.content);
        Some((base.kind, base.packed_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_bounded() {
        let steps = Steps::default();
        let (mut bases, mut out) = (Bases::new(steps.clone()), Vec::new());
        let content = vec![1; 1 << 20];
        for at in 0..1_000 {
            bases.put(1, at, &content, Kind::Tree, 5);
            assert_eq!(bases.get(1, 0, &mut out), Some((Kind::Tree, 5)), "it is used all the time");
        }
        assert_eq!((out, steps.count()), (content, 1_000));
        assert!(bases.young.len() + bases.old.len() <= 2 * (HALF_BYTES_MAX >> 20));
        assert!(bases.get(1, 1, &mut Vec::new()).is_none() && bases.get(2, 0, &mut Vec::new()).is_none());
        bases.put(1, 5_000, &vec![1; OBJECT_BYTES_MAX + 1], Kind::Tree, 5);
        assert!(bases.get(1, 5_000, &mut Vec::new()).is_none(), "it is too large");
    }
}
