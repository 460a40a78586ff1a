//! A durable index in which objects depend on one another: the status of each
//! says the generation of its buddy, 0 if there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use bytes::Bytes;
use serde_json::Value;
use tidegate_model::ObjectKey;
use tidegate_runtime::{BoxError, Change, Durable, Index, Item, Kind, SavedRecord, Touched};

use crate::world::kind;

#[derive(Default)]
pub struct Buddies(Mutex<State>);

#[derive(Default)]
struct State {
    entries: BTreeMap<ObjectKey, Entry>,
    due: BTreeSet<ObjectKey>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub generation: i64,
    /// Of the buddy, as the status says.
    pub said: Option<i64>,
}

/// `t0` and `t1`, `t2` and `t3`, …
pub fn buddy_of(key: &ObjectKey) -> ObjectKey {
    let number: u8 = key.name[1..].parse().unwrap();
    kind().key(key.namespace.as_deref(), &format!("t{}", number ^ 1))
}

fn entry(item: &Item) -> Entry {
    let object: Value = item.parse().unwrap();
    Entry { generation: item.generation(), said: object["status"]["buddy"].as_i64() }
}

impl Buddies {
    pub fn generation(&self, key: &ObjectKey) -> i64 {
        self.0.lock().unwrap().generation(key)
    }

    pub fn entries(&self) -> BTreeMap<ObjectKey, Entry> {
        self.0.lock().unwrap().entries.clone()
    }

    pub fn due(&self) -> BTreeSet<ObjectKey> {
        self.0.lock().unwrap().due.clone()
    }
}

impl State {
    fn generation(&self, key: &ObjectKey) -> i64 {
        self.entries.get(key).map_or(0, |entry| entry.generation)
    }

    fn review(&mut self, keys: BTreeSet<ObjectKey>, touched: &mut Touched) {
        for key in keys {
            let said = self.entries.get(&key).map(|entry| entry.said);
            let is_due = said.is_some_and(|said| said != Some(self.generation(&buddy_of(&key))));
            let was_due = if is_due { !self.due.insert(key.clone()) } else { self.due.remove(&key) };
            if is_due != was_due {
                touched.changed(key.clone());
            }
            if is_due {
                touched.add(key);
            }
        }
    }
}

impl Index for Buddies {
    fn kinds(&self) -> Vec<Kind> {
        vec![kind()]
    }

    fn apply(&self, _kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        let mut state = self.0.lock().unwrap();
        let mut concerned = BTreeSet::new();
        for change in changes {
            let before = state.generation(change.key());
            match change {
                Change::Put(item) => drop(state.entries.insert(item.key.clone(), entry(item))),
                Change::Gone(key) => drop(state.entries.remove(*key)),
            }
            concerned.insert(change.key().clone());
            // As an index does that works in proportion: nobody else is
            // concerned by what does not change.
            if state.generation(change.key()) != before {
                concerned.insert(buddy_of(change.key()));
            }
            touched.changed(change.key().clone());
        }
        state.review(concerned, touched);
    }

    fn keys(&self, _kind: &Kind) -> Vec<ObjectKey> {
        self.0.lock().unwrap().entries.keys().cloned().collect()
    }

    fn audit(&self, touched: &mut Touched) {
        touched.extend(self.due());
    }
}

impl Durable for Buddies {
    fn name(&self) -> &'static str {
        "index.buddies"
    }

    fn format(&self) -> u32 {
        1
    }

    fn record(&self, key: &ObjectKey) -> Option<Bytes> {
        let state = self.0.lock().unwrap();
        let Entry { generation, said } = state.entries.get(key)?;
        let record = serde_json::to_vec(&(generation, said, state.due.contains(key))).unwrap();
        Some(record.into())
    }

    fn load(&self, kind: &Kind, records: &[SavedRecord<'_>]) -> Result<(), BoxError> {
        let mut state = self.0.lock().unwrap();
        for record in records {
            let (generation, said, due) = serde_json::from_slice(record.value)?;
            let key = kind.key(record.namespace, record.name);
            state.entries.insert(key.clone(), Entry { generation, said });
            if due {
                state.due.insert(key);
            }
        }
        Ok(())
    }

    fn recheck(&self, touched: &mut Touched) {
        let mut state = self.0.lock().unwrap();
        let all = state.entries.keys().cloned().collect();
        state.review(all, touched);
    }
}
