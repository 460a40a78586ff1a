//! An object as it was read: its key, its version, its bytes.

use bytes::Bytes;
use serde::Deserialize;
use tidegate_model::{Object, ObjectKey, ResourceVersion};

use crate::{ApiError, Fault};

/// Cheap to clone. The bytes are parsed by whoever needs them, and only as
/// far as they are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    pub key: ObjectKey,
    pub version: ResourceVersion,
    pub json: Bytes,
}

impl Item {
    /// The whole object.
    pub fn object(&self) -> Result<Object, ApiError> {
        Object::from_json(&self.json).ok_or_else(|| self.unreadable("it does not have an object's shape"))
    }

    /// A part of the object, in a type of the caller's own that borrows from
    /// the bytes: several times as fast as [`Self::object`], for an index over
    /// many objects.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.json).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, reason: impl std::fmt::Display) -> ApiError {
        ApiError::new(Fault::Invalid, format!("{} at {} cannot be read: {reason}", self.key, self.version))
    }

    /// `metadata.generation`, without parsing the rest. 0 if it has none.
    pub fn generation(&self) -> i64 {
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            #[serde(default)]
            generation: i64,
        }
        self.parse::<Head>().map_or(0, |head| head.metadata.generation)
    }
}
