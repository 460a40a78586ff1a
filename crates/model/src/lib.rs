//! The words of Tidegate as types: objects, keys, versions, selectors,
//! events, kinds and their schemas. Pure data and pure functions.
//!
//! Invariant: nothing in this crate performs IO or knows an async runtime.

mod conditions;
mod encoded;
mod event;
mod field_error;
mod key;
pub mod kinds;
mod labels;
pub mod manifest;
mod merge;
pub mod mirror;
mod object;
pub mod schema;
mod selector;
pub mod syntax;
pub mod terminal;
pub mod timestamp;
mod version;
pub mod yaml;

pub use conditions::{CONDITION_MESSAGE_BYTES_MAX, CONDITIONS_MAX};
pub use encoded::EncodedObject;
pub use event::EventType;
pub use field_error::{FieldError, FieldErrorReason};
pub use key::{GroupResource, GroupVersionKind, ObjectKey};
pub use labels::Labels;
pub use merge::{Merged, StatusMerge, merge_patch, merge_status};
pub use object::Object;
pub use selector::{FieldRequirement, FieldSelector, LabelSelector, SelectableField, SelectorError};
pub use version::{InvalidVersion, ResourceVersion};
