//! Who asks for which related objects, and where those are: a change of one
//! finds the objects that it concerns without looking at any other.
//!
//! Invariant: an object is touched after whatever is sent along with it came,
//! changed or went, and when it asks for another place. What happened while no
//! manager ran is found by the notes: each says from which related objects the
//! last answer was made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tidegate_model::{Object, ObjectKey, ResourceVersion};
use tidegate_runtime::{Change, Index, Item, Kind, Touched};

use super::relation::{Place, Relation, digest};
use super::spec::HookSpec;

/// About 300 bytes for each object of the hook's kind and relation, and as
/// much for each related object; of a kind that is related by field, that is
/// every object of the kind.
pub struct RelatedIndex {
    kind: Kind,
    spec: HookSpec,
    relations: Vec<Relation>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// By object of the hook's kind: the place it asks for, by relation.
    asking: HashMap<ObjectKey, Box<[Option<Place>]>>,
    askers: BTreeSet<Spot>,
    /// By related object: where it is.
    taking: HashMap<ObjectKey, Vec<(usize, Place)>>,
    found: BTreeMap<Spot, ResourceVersion>,
    notes: HashMap<ObjectKey, Note>,
}

/// A place of one relation, and one object that asks for it or is there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Spot {
    relation: usize,
    place: Place,
    key: ObjectKey,
}

/// What the last call for an object was made with, and what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    pub digest: u64,
    pub answered: bool,
}

impl Note {
    /// Sixteen digits, and whether it was answered.
    pub fn to_bytes(self) -> Bytes {
        format!("{:016x} {}", self.digest, if self.answered { "answered" } else { "failed" }).into()
    }

    /// `None` for what nobody wrote: the object is called again.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (digest, outcome) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Self { digest: u64::from_str_radix(digest, 16).ok()?, answered: outcome == "answered" })
    }
}

impl RelatedIndex {
    pub fn new(kind: Kind, spec: HookSpec, relations: Vec<Relation>, notes: Vec<(ObjectKey, Bytes)>) -> Self {
        let notes = notes.into_iter().filter_map(|(key, note)| Some((key, Note::from_bytes(&note)?))).collect();
        Self { kind, spec, relations, state: RwLock::new(State { notes, ..State::default() }) }
    }

    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// What is at a place, at most `max` and without `asker` itself.
    pub fn at(&self, relation: usize, place: &Place, asker: &ObjectKey, max: usize) -> Vec<ObjectKey> {
        let state = self.read();
        state.at(relation, place).map(|(key, _)| key).filter(|key| *key != asker).take(max).cloned().collect()
    }

    pub fn note(&self, key: &ObjectKey) -> Option<Note> {
        self.read().notes.get(key).copied()
    }

    /// As it is saved by now.
    pub fn set_note(&self, key: &ObjectKey, note: Option<Note>) {
        let notes = &mut self.write().notes;
        match note {
            Some(note) => notes.insert(key.clone(), note),
            None => notes.remove(key),
        };
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = (usize, &Relation)> {
        self.relations.iter().enumerate().filter(move |(_, relation)| relation.kind == *kind)
    }

    /// The reader of the controller hears of its change by itself; but from
    /// here on other objects concern it.
    fn apply_asker(&self, state: &mut State, key: &ObjectKey, object: Option<&Object>, touched: &mut Touched) {
        let object = object.filter(|object| self.spec.selects(object));
        let now: Option<Box<[_]>> =
            object.map(|object| self.relations.iter().map(|relation| relation.asked(object)).collect());
        let before = match &now {
            Some(places) => state.asking.insert(key.clone(), places.clone()),
            None => state.asking.remove(key),
        };
        if before == now {
            return;
        }
        for spot in spots(key, before.iter().flatten()) {
            state.askers.remove(&spot);
        }
        state.askers.extend(spots(key, now.iter().flatten()));
        touched.renew(key.clone());
    }

    fn apply_related(&self, state: &mut State, kind: &Kind, change: &Change<'_>, object: Option<&Object>) -> Vec<Spot> {
        let key = change.key();
        let version = match change {
            Change::Put(Item { version, .. }) => Some(*version),
            Change::Gone(_) => None,
        };
        let taken = |(at, relation): (usize, &Relation)| Some((at, relation.taken(object?)?));
        let now: Vec<(usize, Place)> = self.of_kind(kind).filter_map(taken).collect();
        let spot =
            |(relation, place): &(usize, Place)| Spot { relation: *relation, place: place.clone(), key: key.clone() };
        // Two versions of one kind are two kinds here, and one object.
        let before = state.taking.remove(key).unwrap_or_default();
        let (before, mut kept): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|(at, _)| self.relations[*at].kind == *kind);
        let mut concerned: Vec<Spot> = before.iter().filter(|place| !now.contains(place)).map(spot).collect();
        for left in &concerned {
            state.found.remove(left);
        }
        for (spot, version) in now.iter().map(spot).filter_map(|spot| Some((spot, version?))) {
            if state.found.insert(spot.clone(), version) != Some(version) {
                concerned.push(spot);
            }
        }
        kept.extend(now);
        if !kept.is_empty() {
            state.taking.insert(key.clone(), kept);
        }
        concerned
    }
}

/// The places that an object asks for.
fn spots<'s>(
    key: &'s ObjectKey,
    places: impl Iterator<Item = &'s Option<Place>> + 's,
) -> impl Iterator<Item = Spot> + 's {
    places.enumerate().filter_map(|(relation, place)| Some(Spot { relation, place: place.clone()?, key: key.clone() }))
}

impl State {
    fn at(&self, relation: usize, place: &Place) -> impl Iterator<Item = (&ObjectKey, ResourceVersion)> {
        let spots = self.found.range(first(relation, place)..);
        spots
            .take_while(move |(spot, _)| spot.relation == relation && spot.place == *place)
            .map(|(spot, version)| (&spot.key, *version))
    }

    fn askers(&self, relation: usize, place: &Place) -> impl Iterator<Item = &ObjectKey> {
        let spots = self.askers.range(first(relation, place)..);
        spots.take_while(move |spot| spot.relation == relation && spot.place == *place).map(|spot| &spot.key)
    }

    /// What a call would be made with now.
    fn digest(&self, key: &ObjectKey, places: &[Option<Place>]) -> u64 {
        let asked = places.iter().enumerate().filter_map(|(relation, place)| Some((relation, place.as_ref()?)));
        let related = asked.flat_map(|(relation, place)| {
            self.at(relation, place).map(move |(related, version)| (relation, related, version))
        });
        digest(related.filter(|(_, related, _)| *related != key))
    }
}

/// Sorts before every other spot of the place.
fn first(relation: usize, place: &Place) -> Spot {
    let nothing = tidegate_model::GroupResource::new("", "");
    Spot { relation, place: place.clone(), key: ObjectKey::new(nothing, None, "") }
}

impl Index for RelatedIndex {
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = vec![self.kind.clone()];
        for relation in &self.relations {
            if !kinds.contains(&relation.kind) {
                kinds.push(relation.kind.clone());
            }
        }
        kinds
    }

    fn apply(&self, kind: &Kind, changes: &[Change<'_>], touched: &mut Touched) {
        let mut state = self.write();
        for change in changes {
            let object = match change {
                Change::Put(item) => item.object().ok(),
                Change::Gone(_) => None,
            };
            if *kind == self.kind {
                self.apply_asker(&mut state, change.key(), object.as_ref(), touched);
            }
            for Spot { relation, place, key } in self.apply_related(&mut state, kind, change, object.as_ref()) {
                let askers = state.askers(relation, &place).filter(|asker| **asker != key);
                askers.for_each(|asker| touched.renew(asker.clone()));
            }
        }
    }

    fn keys(&self, kind: &Kind) -> Vec<ObjectKey> {
        let state = self.read();
        let related = state.taking.keys().filter(|key| key.resource == kind.resource);
        let asking = state.asking.keys().filter(|_| *kind == self.kind);
        related.chain(asking).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn audit(&self, touched: &mut Touched) {
        let state = self.read();
        for (key, places) in &state.asking {
            match state.notes.get(key) {
                Some(note) if note.digest != state.digest(key, places) => touched.renew(key.clone()),
                Some(Note { answered: true, .. }) => {}
                // Its retry may not have been saved; its quarantine was.
                Some(Note { answered: false, .. }) => touched.add(key.clone()),
                None => touched.renew(key.clone()),
            }
        }
    }
}

#[cfg(test)]
#[path = "related_index_tests.rs"]
mod tests;
