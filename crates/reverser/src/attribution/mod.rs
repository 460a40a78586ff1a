//! Who did it: admissions, which know the person, joined with watch events,
//! which know what became of the attempt.
//!
//! Invariants: pure, with the time given; nothing depends on the order of the
//! two streams; a record is claimed once; changes of one object leave in the
//! order of its events; nobody's name stands in for a lost one.

mod attempt;
mod content;
mod correlator;
mod person;
#[cfg(test)]
mod simulation;
mod waiting;

pub use attempt::{Attempt, Content, Identity, Operation, Review, read_review};
pub use content::content_hash;
pub use correlator::{Base, Correlator, Limits, Observed};
pub use person::{Person, person};
pub use waiting::{Attributed, Waiting};
