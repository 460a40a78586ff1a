//! The contents of many blobs.

use std::collections::HashMap;

use bytes::Bytes;
use gix_object::Kind;

use crate::error::GitError;
use crate::objects::Objects;
use crate::repository::ObjectId;

/// What is read into memory at most.
#[derive(Clone, Copy, Debug)]
pub struct BlobLimits {
    /// A larger blob is named, not read.
    pub blob_bytes_max: u64,
    pub blobs_max: usize,
    pub bytes_max: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blob {
    Content(Bytes),
    /// With its size.
    TooLarge(u64),
    /// A tree, a commit or a tag, whatever the entry says that led here.
    Other,
}

pub type Blobs = HashMap<ObjectId, Blob>;

/// Each is read once, however often it is named.
pub(crate) fn read(objects: &Objects<'_>, mut ids: Vec<ObjectId>, limits: BlobLimits) -> Result<Blobs, GitError> {
    ids.sort();
    ids.dedup();
    let exceeded = || GitError::TooMuch { files: limits.blobs_max, bytes: limits.bytes_max };
    if ids.len() > limits.blobs_max {
        return Err(exceeded());
    }
    let (mut blobs, mut left, mut content) = (HashMap::with_capacity(ids.len()), limits.bytes_max, Vec::new());
    for id in ids {
        let found = objects.internal(&id)?;
        let blob = match objects.header(&found)? {
            (Kind::Blob, size) if size > limits.blob_bytes_max => Blob::TooLarge(size),
            (Kind::Blob, size) => {
                left = left.checked_sub(size).ok_or_else(exceeded)?;
                objects.read(&found, &mut content)?;
                Blob::Content(Bytes::copy_from_slice(&content))
            }
            (Kind::Tree | Kind::Commit | Kind::Tag, _) => Blob::Other,
        };
        blobs.insert(id, blob);
    }
    Ok(blobs)
}
