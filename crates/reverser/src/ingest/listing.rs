//! A list that is being read: its keys in memory, its contents not for long.

use std::path::Path;

use bytes::Bytes;
use tidegate_git::blob_id;

use crate::change::{Content, Listed};
use crate::spool::SpoolWriter;

/// Contents of one list that stay in memory: a hundred types whose lists are
/// short are 25 MiB at most, and need no file each.
const HELD_BYTES_MAX: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Listing {
    objects: Vec<Listed>,
    held_bytes: usize,
    spool: Spooling,
}

#[derive(Default)]
enum Spooling {
    #[default]
    NotYet,
    On(SpoolWriter),
    /// Said once; the objects are read again when their turn comes.
    Failed,
}

impl Listing {
    pub async fn add(&mut self, mut listed: Listed, folder: &Path) {
        if let Content::Held(yaml) = &listed.content {
            listed.content = self.keep(yaml.clone(), folder).await;
        }
        self.objects.push(listed);
    }

    pub async fn finish(self) -> Vec<Listed> {
        if let Spooling::On(writer) = self.spool
            && let Err(error) = writer.finish().await
        {
            tell(&error);
        }
        self.objects
    }

    async fn keep(&mut self, yaml: Bytes, folder: &Path) -> Content {
        if self.held_bytes + yaml.len() <= HELD_BYTES_MAX {
            self.held_bytes += yaml.len();
            return Content::Held(yaml);
        }
        if let Spooling::NotYet = self.spool {
            self.spool = SpoolWriter::create(folder).map_or_else(|error| failed(&error), Spooling::On);
        }
        if let Spooling::On(writer) = &mut self.spool {
            match writer.add(&yaml).await {
                Ok(spooled) => return Content::Spooled(spooled),
                Err(error) => self.spool = failed(&error),
            }
        }
        Content::Dropped(blob_id(&yaml).ok())
    }
}

fn failed(error: &std::io::Error) -> Spooling {
    tell(error);
    Spooling::Failed
}

fn tell(error: &std::io::Error) {
    tracing::warn!(%error, "the work directory takes no list, its objects are read one by one: make room there, or give --work-dir a larger volume");
}

#[cfg(test)]
mod tests {
    use tidegate_model::mirror::ResourceKey;

    use super::*;
    use crate::change::{State, Version};

    fn listed(at: usize, content: &str) -> Listed {
        let version = Version { uid: "u".into(), resource_version: "1".into(), field_manager: None };
        let state = State { version, yaml: content.to_owned().into() };
        Listed::new(ResourceKey::new("", "v1", "configmaps", Some("n"), &at.to_string()), state)
    }

    /// How many of 100 contents of 10 KiB are in memory, on disk and nowhere.
    async fn check(folder: &Path, expected: [usize; 3]) {
        let (mut listing, mut found) = (Listing::default(), [0; 3]);
        let content = |at: usize| format!("{at:>10240}");
        for at in 0..100 {
            listing.add(listed(at, &content(at)), folder).await;
        }
        for (at, listed) in listing.finish().await.into_iter().enumerate() {
            assert_eq!(*listed.key.name, at.to_string());
            let place = match listed.content {
                Content::Held(yaml) if yaml == content(at) => 0,
                Content::Spooled(spooled) if spooled.read().unwrap() == content(at) => 1,
                Content::Dropped(blob) if blob == blob_id(content(at).as_bytes()).ok() => 2,
                other => panic!("{at}: {other:?}"),
            };
            found[place] += 1;
        }
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn memory_has_a_bound_whatever_the_disk_says() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), [25, 75, 0]).await;
        check(&folder.path().join("gone"), [25, 0, 75]).await;
    }
}
