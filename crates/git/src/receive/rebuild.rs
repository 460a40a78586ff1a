//! Each commit, folder and tag of a pack once, beside what it is stored as a
//! difference from.
//!
//! An object is made from its base, which is still there from when it was made
//! itself: however long the chains are, the work is what the objects have. The
//! files of a pack are not unpacked.
//!
//! Invariant: a base is held until the last of its differences is made, and that
//! is the one with the most below it. So at most as many are held at once as
//! their number can be halved, 23 for eight million.

use std::cell::Cell;
use std::rc::Rc;

use gix_hash::ObjectId as Id;
use gix_object::Kind;
use gix_odb::pack::cache::Never;
use gix_odb::pack::data::decode::entry::ResolvedBase;
use gix_odb::pack::data::{Entry, entry::Header};

use super::limits::Limits;
use super::survey::{Place, Survey};
use crate::beside::Patience;
use crate::objects::HASH;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RebuildError {
    #[error(
        "the folders of the push are {mib} MiB and more, until the {kind} {id}, out of proportion to what was sent: push an older commit first"
    )]
    TooMuch { id: Id, kind: Kind, mib: u64 },
    #[error(
        "the {kind} {id} and what it is stored as a difference from take more than {mib} MiB of memory: divide the folder"
    )]
    TooLarge { id: Id, kind: Kind, mib: usize },
    #[error("the {kind} {id} cannot be unpacked, or is too large: {message}: divide the folder")]
    Unpack { id: Id, kind: Kind, message: String },
    #[error("the push could not be looked at within {seconds} s, until the {kind} {id}: push an older commit first")]
    TooSlow { id: Id, kind: Kind, seconds: u64 },
}

/// One of them.
pub struct Rebuilt<'r> {
    pub place: Place,
    pub kind: Kind,
    pub content: &'r [u8],
    /// Of the same kind, and seen before.
    pub base: Option<&'r [u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Go {
    On,
    /// It is enough.
    End,
}

pub struct Rebuild<'s> {
    survey: &'s Survey,
    patience: &'s Patience,
    limits: Limits,
    inflate: gix_zlib::Inflate,
    content: Vec<u8>,
    held_bytes: Rc<Cell<usize>>,
    pub bytes: u64,
}

/// An object that is to be made, and what from.
struct Step {
    place: Place,
    base: Option<Rc<Held>>,
}

struct Held {
    content: Box<[u8]>,
    all: Rc<Cell<usize>>,
}

impl<'s> Rebuild<'s> {
    pub fn new(survey: &'s Survey, patience: &'s Patience, limits: Limits) -> Self {
        let (inflate, content, held_bytes) = Default::default();
        Self { survey, patience, limits, inflate, content, held_bytes, bytes: 0 }
    }

    pub fn each(&mut self, mut visit: impl FnMut(Rebuilt<'_>) -> Go) -> Result<(), RebuildError> {
        for root in self.survey.roots().filter(|root| self.survey.kind(*root) != Kind::Blob) {
            let mut steps = vec![Step { place: root, base: None }];
            while let Some(Step { place, base }) = steps.pop() {
                let base = base.as_deref().map(|base| &*base.content);
                self.make(place, base)?;
                let kind = self.survey.kind(place);
                if visit(Rebuilt { place, kind, content: &self.content, base }) == Go::End {
                    return Ok(());
                }
                // The last of them is the first that is made.
                let children = self.survey.children(place);
                if !children.is_empty() {
                    let base = Rc::new(self.hold(place)?);
                    steps.extend(children.into_iter().map(|place| Step { place, base: Some(base.clone()) }));
                }
            }
        }
        Ok(())
    }

    /// Into `content`.
    fn make(&mut self, place: Place, base: Option<&[u8]>) -> Result<(), RebuildError> {
        let (id, kind) = (|| self.survey.id(place).to_owned(), self.survey.kind(place));
        if self.patience.is_over() {
            return Err(RebuildError::TooSlow { id: id(), kind, seconds: self.patience.time_max.as_secs() });
        }
        let unpack = |error: &dyn ToString| RebuildError::Unpack { id: id(), kind, message: error.to_string() };
        let entry = self.survey.entry(place).map_err(|error| unpack(&error))?;
        // With a base at hand, it need not be looked for.
        let header = if base.is_some() { Header::RefDelta { base_id: Id::null(HASH) } } else { entry.header };
        let at_hand = |_: &gix_hash::oid, out: &mut Vec<u8>| {
            out.clear();
            out.extend_from_slice(base.unwrap_or_default());
            Ok(Some(ResolvedBase::OutOfPack { kind, end: out.len() }))
        };
        let entry = Entry { header, ..entry };
        let made = self.survey.pack().decode_entry(entry, &mut self.content, &mut self.inflate, &at_hand, &mut Never);
        made.map_err(|error| unpack(&error))?;
        self.bytes += (base.map_or(0, <[u8]>::len) + self.content.len()) as u64;
        let mib = self.limits.unpacked_bytes_max >> 20;
        if self.bytes <= self.limits.unpacked_bytes_max {
            Ok(())
        } else {
            Err(RebuildError::TooMuch { id: id(), kind, mib })
        }
    }

    /// A copy of `content`, for what is made of it.
    fn hold(&self, place: Place) -> Result<Held, RebuildError> {
        let bytes = self.held_bytes.get() + self.content.len();
        if bytes > self.limits.held_bytes_max {
            let (id, kind) = (self.survey.id(place).to_owned(), self.survey.kind(place));
            return Err(RebuildError::TooLarge { id, kind, mib: self.limits.held_bytes_max >> 20 });
        }
        self.held_bytes.set(bytes);
        Ok(Held { content: self.content.as_slice().into(), all: self.held_bytes.clone() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.content.len());
    }
}
