//! Whether a push brings all that it refers to, as far as it is not here.
//!
//! What is here is whole. So it is enough to look at the objects of the push,
//! and of a folder only at what differs from the folder that it is stored as a
//! difference from: that one is here, or is looked at itself. The work grows
//! with the change, not with the branch, and each object is unpacked once.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use gix_hash::{ObjectId as Id, oid};
use gix_object::tree::{EntryRef, name_order};
use gix_object::{CommitRefIter, Kind, TagRef, TreeRefIter};
use gix_odb::Header as _;

use super::limits::Limits;
use super::rebuild::{Go, Rebuild, RebuildError, Rebuilt};
use super::survey::{Place, Survey};
use crate::beside::Patience;
use crate::objects::{HASH, open};
use crate::repository::ObjectId;

/// Of those that are told: one is as good as many.
const PROBLEMS_MAX: usize = 10;
/// What is looked at.
pub struct Whole<'w> {
    /// `None`, if the push brings no object.
    pub survey: Option<&'w Survey>,
    /// The folder of what is here.
    pub objects: &'w Path,
    pub refs: &'w [(String, ObjectId)],
    pub limits: Limits,
}

impl Whole<'_> {
    /// What is missing for the refs, or for any object of the push.
    pub fn problems(&self, patience: &Patience) -> io::Result<Vec<String>> {
        let mut look = Look::new(self.survey, open(self.objects)?, self.limits.steps_max);
        for (name, id) in self.refs {
            if look.is_enough() {
                break;
            }
            look.tip(name, id)?;
        }
        if let Some(survey) = self.survey.filter(|_| !look.is_enough()) {
            let mut failed = Ok(());
            let ended = Rebuild::new(survey, patience, self.limits).each(|rebuilt| {
                failed = look.object(survey, &rebuilt);
                if failed.is_err() || look.is_enough() { Go::End } else { Go::On }
            });
            failed?;
            look.problems.extend(ended.err().as_ref().map(RebuildError::to_string));
        }
        look.problems.truncate(PROBLEMS_MAX);
        if look.steps > look.steps_max {
            look.problems.push(format!(
                "finding what the push refers to takes more than {} steps: push an older commit first",
                look.steps_max
            ));
        }
        Ok(look.problems)
    }
}

struct Look<'s> {
    survey: Option<&'s Survey>,
    here: gix_odb::Handle,
    /// The same, but who asks it in vain does not look at the disk again.
    known: gix_odb::Handle,
    steps: u64,
    steps_max: u64,
    problems: Vec<String>,
    /// Each is told once.
    told: HashSet<Id>,
}

impl<'s> Look<'s> {
    fn new(survey: Option<&'s Survey>, here: gix_odb::Handle, steps_max: u64) -> Self {
        let mut known = here.clone();
        known.refresh_never();
        Self { survey, here, known, steps: 0, steps_max, problems: Vec::new(), told: HashSet::new() }
    }

    /// Nothing more need be looked at.
    fn is_enough(&self) -> bool {
        self.problems.len() >= PROBLEMS_MAX || self.steps > self.steps_max
    }

    fn tip(&mut self, name: &str, id: &ObjectId) -> io::Result<()> {
        let Ok(parsed) = Id::from_hex(id.as_str().as_bytes()) else {
            self.problems.push(format!("{name}: {id} is no SHA-1, which alone is stored here"));
            return Ok(());
        };
        match self.kind_of(&parsed)? {
            None => self.problems.push(format!(
                "{name}: the push does not bring {id}, nor is it here (missing necessary objects): fetch, and push again"
            )),
            Some(kind) if kind != Kind::Commit && name.starts_with("refs/heads/") => {
                self.problems.push(format!("{name}: {id} is a {kind} and no commit: push a commit"));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn object(&mut self, survey: &Survey, rebuilt: &Rebuilt<'_>) -> io::Result<()> {
        let &Rebuilt { place, kind, content, base } = rebuilt;
        let id = survey.id(place);
        match kind {
            Kind::Blob => Ok(()),
            Kind::Commit => self.commit(id, content),
            Kind::Tag => self.tag(id, content),
            Kind::Tree if base.is_none() && self.is_copy(survey, place)? => Ok(()),
            Kind::Tree => self.tree(id, content, base.unwrap_or_default()),
        }
    }

    /// Git adds copies of what is here, if others are stored as differences
    /// from it. They are whole.
    fn is_copy(&mut self, survey: &Survey, place: Place) -> io::Result<bool> {
        if !survey.is_base(place) {
            return Ok(false);
        }
        let header = self.known.try_header(survey.id(place)).map_err(unreadable)?;
        self.count(header);
        Ok(header.is_some())
    }

    fn commit(&mut self, id: &oid, content: &[u8]) -> io::Result<()> {
        let Ok(tree) = CommitRefIter::from_bytes(content, HASH).tree_id() else {
            return self.unread(id, Kind::Commit);
        };
        self.refer(id, tree, Kind::Tree)?;
        CommitRefIter::from_bytes(content, HASH)
            .parent_ids()
            .try_for_each(|parent| self.refer(id, parent, Kind::Commit))
    }

    fn tag(&mut self, id: &oid, content: &[u8]) -> io::Result<()> {
        match TagRef::from_bytes(content, HASH) {
            Ok(tag) => self.refer(id, tag.target(), tag.target_kind),
            Err(_) => self.unread(id, Kind::Tag),
        }
    }

    fn tree(&mut self, id: &oid, content: &[u8], base: &[u8]) -> io::Result<()> {
        let mut base = TreeRefIter::from_bytes(base, HASH).peekable();
        for entry in TreeRefIter::from_bytes(content, HASH) {
            let Ok(entry) = entry else { return self.unread(id, Kind::Tree) };
            // Both are sorted: an entry of the same name is the next, or there is none.
            while base.next_if(|other| other.as_ref().is_ok_and(|other| comes_before(other, &entry))).is_some() {}
            let is_known = base.peek().is_some_and(|other| other.as_ref().is_ok_and(|other| *other == entry));
            if is_known || entry.mode.is_commit() {
                continue;
            }
            let kind = if entry.mode.is_tree() { Kind::Tree } else { Kind::Blob };
            self.refer(id, entry.oid.to_owned(), kind)?;
            if self.is_enough() {
                break;
            }
        }
        Ok(())
    }

    fn unread(&mut self, id: &oid, kind: Kind) -> io::Result<()> {
        self.problems.push(format!("the {kind} {id} cannot be read: run `git fsck` in your clone"));
        Ok(())
    }

    /// `from` needs `to`.
    fn refer(&mut self, from: &oid, to: Id, kind: Kind) -> io::Result<()> {
        let problem = match self.kind_of(&to)? {
            Some(found) if found == kind => return Ok(()),
            Some(found) => format!("{from} takes {to} for a {kind}, but it is a {found}"),
            None => {
                format!("missing necessary objects: {from} refers to the {kind} {to}, which the push does not bring")
            }
        };
        if self.told.insert(to) {
            self.problems.push(format!("{problem}: run `git fsck` in your clone"));
        }
        Ok(())
    }

    /// The push is asked first: whoever is asked in vain looks at the disk again.
    fn kind_of(&mut self, id: &oid) -> io::Result<Option<Kind>> {
        if let Some((survey, place)) = self.survey.and_then(|survey| Some((survey, survey.lookup(id)?))) {
            return Ok(Some(survey.kind(place)));
        }
        let header = self.here.try_header(id).map_err(unreadable)?;
        self.count(header);
        Ok(header.map(|header| header.kind()))
    }

    fn count(&mut self, found: Option<gix_odb::find::Header>) {
        let differences = found.and_then(|header| header.num_deltas()).unwrap_or_default();
        self.steps += 1 + u64::from(differences);
    }
}

fn comes_before(other: &EntryRef<'_>, entry: &EntryRef<'_>) -> bool {
    name_order(other.filename, other.mode.is_tree(), entry.filename, entry.mode.is_tree()).is_lt()
}

fn unreadable(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}
