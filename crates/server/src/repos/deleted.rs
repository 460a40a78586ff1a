//! The data of deleted repositories, kept for a grace time in
//! `repos/.deleted/<namespace>/<name>.<second of its deletion>.git`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::hosting::Hosting;
use super::projector::Projector;
use crate::api::Tombstone;
use crate::identity::Clock;

/// How often we look: one listing of a folder.
const LOOK_INTERVAL_MIN: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(60);
const SUFFIX: &str = ".git";

pub struct Deleted {
    hosting: Arc<Hosting>,
    projector: Arc<Projector>,
    grace: Duration,
    clock: Clock,
}

impl Deleted {
    pub fn new(hosting: Arc<Hosting>, projector: Arc<Projector>, grace: Duration, clock: Clock) -> Self {
        Self { hosting, projector, grace, clock }
    }

    /// Ends never; whoever spawned it does.
    pub async fn run(self) {
        let interval = self.grace.clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX);
        loop {
            self.sweep().await;
            tokio::time::sleep(interval).await;
            self.put_away().await;
        }
    }

    /// What a crash or a refusal left to do.
    pub async fn put_away(&self) {
        match Tombstone::list(&self.hosting.view()) {
            Ok(ids) => {
                for id in ids {
                    self.projector.retire_or_log(&self.hosting, &id).await;
                }
            }
            Err(error) => tracing::error!(%error, "the deleted repositories cannot be listed"),
        }
    }

    /// Removes what was kept long enough.
    async fn sweep(&self) {
        let (folder, now, grace) = (self.hosting.deleted_folder(), self.clock.now().timestamp(), self.grace);
        let swept = tokio::task::spawn_blocking(move || sweep(&folder, now, grace)).await;
        if let Ok(Err(error)) = swept {
            tracing::error!(%error, "failed to remove the data of deleted repositories");
        }
    }
}

/// Where a repository that was deleted `now` goes: a name that is free.
pub fn place(folder: &Path, name: &str, now: i64) -> PathBuf {
    let mut places = (now..).map(|second| folder.join(format!("{name}.{second}{SUFFIX}")));
    places.find(|place| !place.exists()).unwrap_or_else(|| folder.join(name))
}

/// A crash in the middle leaves less of it, which the next look removes.
fn sweep(folder: &Path, now: i64, grace: Duration) -> io::Result<()> {
    for namespace in entries(folder)? {
        for kept in entries(&namespace)?.into_iter().filter(|kept| is_over(kept, now, grace)) {
            std::fs::remove_dir_all(&kept)?;
            tracing::info!(path = %kept.display(), "the data of a deleted repository is removed");
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whatever has another name is not ours to remove.
fn is_over(path: &Path, now: i64, grace: Duration) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(SUFFIX));
    let second = name.and_then(|name| name.rsplit_once('.')?.1.parse::<i64>().ok());
    let grace = i64::try_from(grace.as_secs()).unwrap_or(i64::MAX);
    second.is_some_and(|second| second.saturating_add(grace) <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_and_what_goes() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("shop");
        std::fs::create_dir_all(kept.join("goods.100.git/objects")).unwrap();
        std::fs::create_dir_all(kept.join("a.b.200.git")).unwrap();
        std::fs::create_dir_all(kept.join("stranger")).unwrap();
        let names = || {
            let mut names: Vec<_> = entries(&kept).unwrap();
            names.sort();
            names.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for (now, left) in [
            (109, &["a.b.200.git", "goods.100.git", "stranger"][..]),
            (110, &["a.b.200.git", "stranger"]),
            (1000, &["stranger"]),
        ] {
            sweep(folder.path(), now, Duration::from_secs(10)).unwrap();
            assert_eq!(names(), left, "at {now}");
        }
        sweep(&folder.path().join("absent"), 0, Duration::ZERO).unwrap();
    }

    #[test]
    fn two_in_one_second_have_two_places() {
        let folder = tempfile::tempdir().unwrap();
        let first = place(folder.path(), "goods", 100);
        std::fs::create_dir(&first).unwrap();
        assert_eq!(first, folder.path().join("goods.100.git"));
        assert_eq!(place(folder.path(), "goods", 100), folder.path().join("goods.101.git"));
    }
}
