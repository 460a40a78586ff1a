//! The objects of a pack: what each is, and which are stored as differences
//! from which.
//!
//! It is told by the headers of the entries alone, in one pass: nothing is
//! unpacked, however long the chains of differences are. Git has found the pack
//! good before, so that each chain ends at a whole object.

use std::io;
use std::path::Path;

use gix_hash::oid;
use gix_object::Kind;
use gix_odb::pack::data::entry::Header;
use gix_odb::pack::{MMap, data, index};

use crate::objects::{HASH, OBJECT_BYTES_MAX};

/// As deep as git makes them when it is asked for the deepest: `git repack`
/// takes no `--depth` beyond it. Whoever reads an object goes through its chain.
const DEPTH_MAX: u32 = 4_095;
/// What an object takes here while the pack is looked at is 40 bytes, so
/// 320 MiB; git itself has room for some six million.
const OBJECTS_MAX: u32 = 8_000_000;

/// The place of an object in the index.
pub type Place = u32;

const NONE: Place = Place::MAX;

#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error(
        "the object {id} is stored as a difference from others, more than {DEPTH_MAX} deep: run `git repack -adf` in your clone, and push again"
    )]
    TooDeep { id: gix_hash::ObjectId },
    #[error("{found} objects are more than the {OBJECTS_MAX} that one push may bring: push an older commit first")]
    TooMany { found: u32 },
    #[error("failed to read the objects of the push")]
    Unreadable(#[source] io::Error),
}

pub struct Survey {
    index: index::File<MMap>,
    pack: data::File<MMap>,
    nodes: Vec<Node>,
    /// Those that are stored whole.
    roots: Vec<Place>,
}

/// An object, and those that are stored as differences from it.
#[derive(Clone)]
struct Node {
    /// None until its chain was followed.
    kind: Option<Kind>,
    first_child: Place,
    next_sibling: Place,
    /// It and all that are stored as differences from it, directly or not.
    weight: u32,
}

impl Survey {
    pub fn of(pack: &Path) -> Result<Self, SurveyError> {
        let index = index::File::at(pack.with_extension("idx"), HASH).map_err(unreadable)?;
        let pack = data::File::at(pack, HASH).map_err(unreadable)?.with_alloc_limit_bytes(Some(OBJECT_BYTES_MAX));
        let found = index.num_objects();
        if found > OBJECTS_MAX {
            return Err(SurveyError::TooMany { found });
        }
        let alone = Node { kind: None, first_child: NONE, next_sibling: NONE, weight: 1 };
        let mut survey = Self { index, pack, nodes: vec![alone; found as usize], roots: Vec::new() };
        survey.link()?;
        survey.follow()?;
        Ok(survey)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn lookup(&self, id: &oid) -> Option<Place> {
        self.index.lookup(id)
    }

    pub fn id(&self, place: Place) -> &oid {
        self.index.oid_at_index(place)
    }

    pub fn kind(&self, place: Place) -> Kind {
        // Each chain was followed.
        self.nodes[place as usize].kind.unwrap_or(Kind::Blob)
    }

    pub fn pack(&self) -> &data::File<MMap> {
        &self.pack
    }

    pub fn entry(&self, place: Place) -> io::Result<data::Entry> {
        self.pack.entry(self.index.pack_offset_at_index(place)).map_err(io::Error::other)
    }

    pub fn roots(&self) -> impl Iterator<Item = Place> {
        self.roots.iter().copied()
    }

    /// Whether any is stored as a difference from it.
    pub fn is_base(&self, place: Place) -> bool {
        self.nodes[place as usize].first_child != NONE
    }

    /// Those that are stored as differences from it, with the one first that
    /// most others are stored as differences from.
    pub fn children(&self, place: Place) -> Vec<Place> {
        let next = |place: Place| (place != NONE).then_some(place);
        let first = next(self.nodes[place as usize].first_child);
        let mut children: Vec<_> =
            std::iter::successors(first, |child| next(self.nodes[*child as usize].next_sibling)).collect();
        if let Some(heaviest) = (0..children.len()).max_by_key(|at| self.nodes[children[*at] as usize].weight) {
            children.swap(0, heaviest);
        }
        children
    }

    fn link(&mut self) -> Result<(), SurveyError> {
        let offset = |place| (self.index.pack_offset_at_index(place), place);
        let mut by_offset: Vec<(u64, Place)> = (0..self.index.num_objects()).map(offset).collect();
        by_offset.sort_unstable();
        for &(offset, place) in &by_offset {
            let entry = self.pack.entry(offset).map_err(unreadable)?;
            let base = match entry.header {
                Header::OfsDelta { base_distance } => {
                    let base = entry.checked_base_pack_offset(base_distance);
                    base.and_then(|base| by_offset.binary_search_by_key(&base, |(offset, _)| *offset).ok())
                        .map(|at| by_offset[at].1)
                }
                Header::RefDelta { base_id } => self.index.lookup(base_id),
                whole => {
                    self.nodes[place as usize].kind = whole.as_kind();
                    self.roots.push(place);
                    continue;
                }
            };
            let base = base.ok_or_else(|| unreadable("a difference from an object that is not there"))?;
            let former = std::mem::replace(&mut self.nodes[base as usize].first_child, place);
            self.nodes[place as usize].next_sibling = former;
        }
        Ok(())
    }

    /// Tells what each is, by what it is a difference from, and weighs them.
    fn follow(&mut self) -> Result<(), SurveyError> {
        let (mut order, mut depth) = (Vec::with_capacity(self.nodes.len()), 0);
        order.extend(self.roots.iter().map(|root| (*root, NONE)));
        let mut generation = 0..order.len();
        while !generation.is_empty() {
            if depth > DEPTH_MAX {
                return Err(SurveyError::TooDeep { id: self.id(order[generation.start].0).to_owned() });
            }
            for at in generation.clone() {
                let (base, _) = order[at];
                let kind = self.nodes[base as usize].kind;
                let mut child = self.nodes[base as usize].first_child;
                while let Some(node) = self.nodes.get_mut(child as usize) {
                    node.kind = kind;
                    order.push((child, base));
                    child = node.next_sibling;
                }
            }
            generation = generation.end..order.len();
            depth += 1;
        }
        if order.len() != self.nodes.len() {
            return Err(unreadable("a chain of differences without an end"));
        }
        for &(place, base) in order.iter().rev() {
            let weight = self.nodes[place as usize].weight;
            if let Some(base) = self.nodes.get_mut(base as usize) {
                base.weight += weight;
            }
        }
        Ok(())
    }
}

fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SurveyError {
    SurveyError::Unreadable(io::Error::other(error))
}
