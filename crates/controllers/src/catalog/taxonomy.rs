//! The forest of categories: who is whose parent, and where each one stands.
//!
//! Invariant: `standing` is true of every category after each change. A change
//! walks up once from the changed category, and down its subtree as far as
//! anything changes.

use std::collections::{HashMap, HashSet, VecDeque};

use super::edges::Edges;
use super::facts::Common;
use super::table::{NamespaceId, Slot, Table};

/// A path of 100 names of 253 bytes is 25 KiB of status; no catalogue that
/// people walk is deeper.
pub const CATEGORY_DEPTH_MAX: u16 = 100;

pub(crate) struct Category {
    pub common: Common,
    pub parent: Option<Slot>,
    pub standing: Standing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// So many steps from its root.
    Rooted(u16),
    /// More than [`CATEGORY_DEPTH_MAX`].
    TooDeep,
    InCycle,
    BelowCycle,
    /// Its parent, or that of an ancestor, does not exist.
    Orphaned,
}

#[derive(Default)]
pub(crate) struct Taxonomy {
    pub table: Table<Category>,
    children: Edges,
    child_counts: HashMap<Slot, u32>,
    /// Of a catalogue that holds a part of all objects.
    children_elsewhere: HashMap<Slot, i64>,
}

impl Taxonomy {
    /// Links `slot` to its new parent; says what was there before, whose
    /// parent is to be released with [`Self::unlink`].
    pub fn replace(&mut self, slot: Slot, parent: Option<&str>, common: Option<Common>) -> Option<Category> {
        let namespace = self.table.node(slot).namespace;
        let parent = parent.map(|name| self.link(namespace, name, slot));
        let facts = common.map(|common| Category { common, parent, standing: Standing::Orphaned });
        self.table.replace(slot, facts)
    }

    pub fn unlink(&mut self, slot: Slot, before: Option<Slot>, after: Option<Slot>) {
        let Some(parent) = before else { return };
        if before != after {
            self.children.remove(parent, slot);
        }
        if let Some(count) = self.child_counts.get_mut(&parent) {
            *count -= 1;
            if *count == 0 {
                self.child_counts.remove(&parent);
            }
        }
        self.table.release(parent);
    }

    pub fn child_count(&self, slot: Slot) -> u32 {
        let elsewhere = self.children_elsewhere.get(&slot).copied().unwrap_or(0);
        let here = self.child_counts.get(&slot).copied().unwrap_or(0);
        u32::try_from(i64::from(here) + elsewhere).unwrap_or(0)
    }

    /// So many more, or fewer, of its children are not here.
    pub fn child_elsewhere(&mut self, slot: Slot, more: i64) {
        self.table.refer_elsewhere(slot, more);
        *self.children_elsewhere.entry(slot).or_default() += more;
    }

    /// Whatever else refers to a category is a product.
    pub fn product_count(&self, slot: Slot) -> u32 {
        self.table.referrers(slot).saturating_sub(self.child_count(slot))
    }

    /// Finds the standing of `top` and of its subtree again, after its parent
    /// or its existence changed. Returns those that may have something else to
    /// report, without `top`.
    pub fn replant(&mut self, top: Slot) -> Vec<Slot> {
        let ring: HashSet<Slot> = self.ring(top).into_iter().collect();
        let standing = match ring.contains(&top) {
            true => Standing::InCycle,
            false => self.standing_by_parent(top),
        };
        self.set_standing(top, standing);
        let mut seen = HashSet::from([top]);
        let mut queue = VecDeque::from([top]);
        let mut changed = Vec::new();
        while let Some(parent) = queue.pop_front() {
            for child in self.children.of(parent).collect::<Vec<_>>() {
                if !seen.insert(child) {
                    continue;
                }
                let next = if ring.contains(&child) { Standing::InCycle } else { self.standing_by_parent(child) };
                let moved = self.set_standing(child, next) != Some(next) || next.has_path() || ring.contains(&child);
                if moved || parent == top {
                    changed.push(child);
                }
                if moved {
                    queue.push_back(child);
                }
            }
        }
        changed
    }

    /// Names from the root to `slot`, if it has a root.
    pub fn path(&self, slot: Slot) -> Option<Vec<&str>> {
        let facts = self.table.facts(slot)?;
        if !facts.standing.has_path() {
            return None;
        }
        let mut path: Vec<&str> = self.upwards(slot).map(|slot| self.table.name(slot)).collect();
        path.reverse();
        Some(path)
    }

    /// The name that its way to a root ends at, because no category has it.
    pub fn missing_above(&self, slot: Slot) -> Option<&str> {
        if self.table.facts(slot)?.standing != Standing::Orphaned {
            return None;
        }
        let last = self.upwards(slot).last()?;
        (!self.table.exists(last)).then(|| self.table.name(last))
    }

    /// The cycle that `slot` is in, from itself upwards; empty if in none.
    pub fn ring(&self, slot: Slot) -> Vec<Slot> {
        // Without children nothing leads back to it; one that leads back is
        // above it, and so it is here.
        if !self.child_counts.contains_key(&slot) {
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let way: Vec<Slot> = self.upwards(slot).take_while(|slot| seen.insert(*slot)).collect();
        let back = way.last().and_then(|last| self.parent(*last));
        if back == Some(slot) { way } else { Vec::new() }
    }

    /// `slot`, its parent, and so on; for ever in a cycle.
    fn upwards(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        std::iter::successors(Some(slot), |slot| self.parent(*slot))
    }

    fn parent(&self, slot: Slot) -> Option<Slot> {
        self.table.facts(slot)?.parent
    }

    fn link(&mut self, namespace: NamespaceId, parent: &str, child: Slot) -> Slot {
        let parent = self.table.refer(namespace, parent);
        self.children.insert(parent, child);
        *self.child_counts.entry(parent).or_default() += 1;
        parent
    }

    fn standing_by_parent(&self, slot: Slot) -> Standing {
        let Some(parent) = self.parent(slot) else { return Standing::Rooted(0) };
        match self.table.facts(parent).map(|facts| facts.standing) {
            Some(Standing::Rooted(depth)) if depth < CATEGORY_DEPTH_MAX => Standing::Rooted(depth + 1),
            Some(Standing::Rooted(_) | Standing::TooDeep) => Standing::TooDeep,
            Some(Standing::InCycle | Standing::BelowCycle) => Standing::BelowCycle,
            Some(Standing::Orphaned) | None => Standing::Orphaned,
        }
    }

    /// The one before; `None` if the category does not exist.
    fn set_standing(&mut self, slot: Slot, standing: Standing) -> Option<Standing> {
        let facts = self.table.facts_mut(slot)?;
        Some(std::mem::replace(&mut facts.standing, standing))
    }
}

impl Standing {
    /// It reports names of its ancestors, so it follows all their changes.
    fn has_path(self) -> bool {
        matches!(self, Self::Rooted(_))
    }
}
