//! The contents of many blobs.

use std::collections::HashMap;

use bytes::Bytes;
use gix_object::Kind;

use crate::error::GitError;
use crate::objects::{Header, Objects};
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
    let (mut blobs, mut wanted, mut left) = (HashMap::with_capacity(ids.len()), Vec::new(), limits.bytes_max);
    for id in ids {
        let found = objects.internal(&id)?;
        let blob = match objects.header(&found)? {
            Header { kind: Kind::Blob, bytes, .. } if bytes > limits.blob_bytes_max => Blob::TooLarge(bytes),
            Header { kind: Kind::Blob, bytes, depth } => {
                left = left.checked_sub(bytes).ok_or_else(exceeded)?;
                wanted.push((depth, found, id));
                continue;
            }
            Header { kind: Kind::Tree | Kind::Commit | Kind::Tag, .. } => Blob::Other,
        };
        blobs.insert(id, blob);
    }
    // What others are stored as differences from comes before them.
    wanted.sort_unstable_by_key(|(depth, ..)| *depth);
    let mut content = Vec::new();
    for (_, found, id) in wanted {
        objects.read(&found, &mut content)?;
        blobs.insert(id, Blob::Content(Bytes::copy_from_slice(&content)));
    }
    Ok(blobs)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::beside::beside;
    use crate::packing::Packing;
    use crate::program::Program;
    use crate::repository::Repository;

    /// A hundred chains, forty deep, in whatever order their ids have.
    #[tokio::test]
    async fn a_chain_is_gone_through_once() {
        const CHAINS: usize = 100;
        const DEPTH: usize = 40;
        let dir = tempfile::tempdir().unwrap();
        let search_path = std::env::var_os("PATH").unwrap();
        let program = Program { git: "git".into(), search_path, home: dir.path().to_owned() };
        let repository = Repository::new(program, dir.path().join("r.git"));
        repository.init("main").await.unwrap();
        let mut packing = Packing::default();
        for chain in 0..CHAINS {
            let mut last = packing.whole(Kind::Blob, format!("{chain}:0").as_bytes());
            for at in 1..=DEPTH {
                last = packing.anew(last, format!("{chain}:{at}").as_bytes());
            }
        }
        let mut git = Command::new("git");
        git.arg("-C").arg(repository.dir()).args(["index-pack", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut git = git.spawn().unwrap();
        std::io::Write::write_all(&mut git.stdin.take().unwrap(), &packing.pack()).unwrap();
        assert!(git.wait().unwrap().success());
        let ids: Vec<_> =
            (0..packing.objects.len()).map(|at| ObjectId::from_trusted(packing.id(at).to_string())).collect();
        let limits = BlobLimits { blob_bytes_max: 100, blobs_max: ids.len(), bytes_max: 1 << 20 };
        let expected = ids.len();
        beside(Duration::MAX, move |patience| {
            let mut objects = Objects::open(&repository, patience)?;
            assert_eq!(read(&objects, ids.clone(), limits)?.len(), expected);
            let steps = objects.steps();
            assert!(steps <= 2 * (CHAINS * DEPTH) as u64, "{steps}");
            objects.bound_steps(steps - 1);
            let error = read(&objects, ids, limits).unwrap_err();
            assert!(matches!(error, GitError::TooEntangled { .. }) && error.is_of_the_commit(), "{error}");
            Ok(())
        })
        .await
        .unwrap();
    }
}
