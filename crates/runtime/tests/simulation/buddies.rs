//! A durable index in which objects depend on one another: the status of each
//! says the generation of its buddy, 0 if there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::Value;
use tidegate_model::ObjectKey;
use tidegate_runtime::{BoxError, Change, Durable, Index, Item, Kind, Preview, SavedRecord, Touched};

use crate::world::kind;

#[derive(Default)]
pub struct Buddies {
    whole: Mutex<State>,
    ahead: Arc<Mutex<Ahead>>,
}

/// Who answers while the records are loaded.
#[derive(Default)]
enum Ahead {
    #[default]
    Whole,
    Part {
        state: State,
        asked: BTreeSet<ObjectKey>,
    },
    Nobody,
}

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
    /// `None` if it cannot be said now.
    pub fn generation(&self, key: &ObjectKey) -> Option<i64> {
        match &*self.ahead.lock().unwrap() {
            Ahead::Whole => Some(self.whole.lock().unwrap().generation(key)),
            Ahead::Part { state, asked } => {
                assert!(asked.contains(key), "{key} was asked for before the index is filled");
                Some(state.generation(key))
            }
            Ahead::Nobody => None,
        }
    }

    pub fn entries(&self) -> BTreeMap<ObjectKey, Entry> {
        self.whole.lock().unwrap().entries.clone()
    }

    pub fn due(&self) -> BTreeSet<ObjectKey> {
        self.whole.lock().unwrap().due.clone()
    }
}

impl State {
    fn generation(&self, key: &ObjectKey) -> i64 {
        self.entries.get(key).map_or(0, |entry| entry.generation)
    }

    fn apply(&mut self, changes: &[Change<'_>], touched: &mut Touched) {
        let mut concerned = BTreeSet::new();
        for change in changes {
            let before = self.generation(change.key());
            match change {
                Change::Put(item) => drop(self.entries.insert(item.key.clone(), entry(item))),
                Change::Gone(key) => drop(self.entries.remove(*key)),
            }
            concerned.insert(change.key().clone());
            // As an index does that works in proportion: nobody else is
            // concerned by what does not change.
            if self.generation(change.key()) != before {
                concerned.insert(buddy_of(change.key()));
            }
            touched.changed(change.key().clone());
        }
        self.review(concerned, touched);
    }

    fn load(&mut self, key: ObjectKey, record: &[u8]) -> Result<(), BoxError> {
        let (generation, said, due) = serde_json::from_slice(record)?;
        self.entries.insert(key.clone(), Entry { generation, said });
        if due {
            self.due.insert(key);
        }
        Ok(())
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
        self.whole.lock().unwrap().apply(changes, touched);
    }

    fn keys(&self, _kind: &Kind) -> Vec<ObjectKey> {
        self.whole.lock().unwrap().entries.keys().cloned().collect()
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
        let state = self.whole.lock().unwrap();
        let Entry { generation, said } = state.entries.get(key)?;
        let record = serde_json::to_vec(&(generation, said, state.due.contains(key))).unwrap();
        Some(record.into())
    }

    fn load(&self, kind: &Kind, records: &[SavedRecord<'_>]) -> Result<(), BoxError> {
        let mut state = self.whole.lock().unwrap();
        records.iter().try_for_each(|record| state.load(kind.key(record.namespace, record.name), record.value))
    }

    fn recheck(&self, touched: &mut Touched) {
        let mut state = self.whole.lock().unwrap();
        let all = state.entries.keys().cloned().collect();
        state.review(all, touched);
    }

    fn preview(&self, _summary: &Value) -> Option<Box<dyn Preview>> {
        *self.ahead.lock().unwrap() = Ahead::Part { state: State::default(), asked: BTreeSet::new() };
        Some(Box::new(Part(self.ahead.clone())))
    }
}

/// Whoever has changed, and their buddies.
struct Part(Arc<Mutex<Ahead>>);

impl Preview for Part {
    fn needs(&mut self, _kind: &Kind, changes: &[Change<'_>]) -> Vec<ObjectKey> {
        let Ahead::Part { asked, .. } = &mut *self.0.lock().unwrap() else { return Vec::new() };
        let keys = changes.iter().flat_map(|change| [change.key().clone(), buddy_of(change.key())]);
        keys.filter(|key| asked.insert(key.clone())).collect()
    }

    fn load(&mut self, key: &ObjectKey, record: Option<&[u8]>) -> Result<(), BoxError> {
        let Ahead::Part { state, .. } = &mut *self.0.lock().unwrap() else { return Ok(()) };
        record.map_or(Ok(()), |record| state.load(key.clone(), record))
    }

    fn apply(&mut self, _kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        let Ahead::Part { state, .. } = &mut *self.0.lock().unwrap() else { return };
        state.apply(changes, touched);
        touched.extend(changes.iter().map(|change| change.key().clone()));
    }

    fn close(&mut self) {
        *self.0.lock().unwrap() = Ahead::Nobody;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = Ahead::Whole;
    }
}
