//! Where hosted repositories are, and what their objects say of them.
//!
//! A repository is there as soon as its `Repository` object is: its directory
//! is made when somebody first asks for it.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidegate_admission::Rules;
use tidegate_git::{GitError, Moved, Program, RefUpdate, Repository, end_orphans};
use tidegate_model::Object;
use tidegate_store::{Selection, StoreError, View};
use tokio::sync::{Mutex, RwLock};

use super::deleted;
use super::id::RepositoryId;
use super::remote::RemoteSpec;
use crate::api::{Api, Tombstone};
use crate::identity::Clock;

/// The folder of all repositories in the data directory.
const FOLDER: &str = "repos";
/// Of it, where deleted ones are kept: no namespace is called so.
const DELETED_FOLDER: &str = ".deleted";
const BRANCH_DEFAULT: &str = "main";
/// Of the file `HEAD`: which branch a clone checks out.
const HEAD_PREFIX: &str = "ref: refs/heads/";

#[derive(Debug, thiserror::Error)]
pub enum HostingError {
    #[error("failed to create or find {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("failed to read the Repository object")]
    Store(#[from] StoreError),
    #[error("failed to create the repository")]
    Git(#[from] GitError),
    #[error("a deleted repository of this name is not put away yet: try again in a minute, the server's log says why")]
    Deleted,
    #[error("failed to move the data of a deleted repository to {}", path.display())]
    PutAway { path: PathBuf, source: io::Error },
}

/// A repository that exists, as its object describes it now.
#[derive(Clone, Debug)]
pub struct Hosted {
    pub id: RepositoryId,
    /// Of its object, which `system/control` may lack.
    pub uid: Option<String>,
    /// Where it is fetched from; `None` if it is pushed to.
    pub remote: Option<RemoteSpec>,
    pub git: Repository,
    pub rules: Rules,
    /// The branch that is projected.
    pub branch: String,
    /// The folder of it that is projected; empty for all.
    pub path: String,
    pub allow_force: bool,
}

pub struct Hosting {
    api: Api,
    folder: PathBuf,
    program: Program,
    /// Held while a directory is made: two first requests make one.
    making: Mutex<()>,
    /// Read by each move of refs, written by whoever clears up after a dead one:
    /// no move waits for another.
    moving: RwLock<()>,
    clock: Clock,
}

impl Hosting {
    pub fn open(api: Api, data_dir: &Path, program: Program, clock: Clock) -> Result<Self, HostingError> {
        let folder = data_dir.join(FOLDER);
        create_folder(&folder)?;
        Ok(Self { api, folder, program, making: Mutex::default(), moving: RwLock::default(), clock })
    }

    /// Every hosted repository that the store knows of.
    pub fn list(&self) -> Result<Vec<RepositoryId>, StoreError> {
        let mut ids = vec![RepositoryId::control()];
        for stored in self.api.store().view().scan(&Selection::all(RepositoryId::resource()), None) {
            let key = stored?.key;
            ids.extend(RepositoryId::new(key.namespace.as_deref().unwrap_or_default(), &key.name));
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// `None` if there is no such repository.
    pub async fn find(&self, id: &RepositoryId) -> Result<Option<Hosted>, HostingError> {
        let object = self.object(id)?;
        let is_control = *id == RepositoryId::control();
        if object.is_none() && !is_control {
            return Ok(None);
        }
        if self.is_deleted(id)? {
            return Err(HostingError::Deleted);
        }
        let hosted = self.describe(id, object.as_ref());
        self.make(&hosted).await?;
        Ok(Some(hosted))
    }

    pub fn view(&self) -> View {
        self.api.store().view()
    }

    fn object(&self, id: &RepositoryId) -> Result<Option<Object>, StoreError> {
        Ok(self.view().get(&id.key())?.and_then(|stored| Object::from_json(&stored.json)))
    }

    /// Whether one of this name was deleted and has not been put away. Another
    /// of the same name may be there already.
    pub fn is_deleted(&self, id: &RepositoryId) -> Result<bool, StoreError> {
        let Some(Tombstone(uid)) = Tombstone::read(&self.view(), id)? else { return Ok(false) };
        Ok(self.object(id)?.is_none_or(|object| object.uid() != Some(&uid)))
    }

    /// The deleted one of this name: its object says nothing of it any more.
    pub fn former(&self, id: &RepositoryId) -> Hosted {
        self.describe(id, None)
    }

    /// Before any branch is looked at: a push that an earlier server consented
    /// to must not move one afterwards.
    pub async fn end_orphans(&self) {
        match end_orphans(&self.folder).await {
            Ok(0) => {}
            Ok(ended) => tracing::warn!(ended, "ended pushes that a killed server left running"),
            Err(error) => tracing::error!(%error, "failed to end pushes that a killed server left running"),
        }
    }

    /// Before it is served: what a killed git left would refuse every push.
    pub async fn clear_leftovers(&self, id: &RepositoryId) {
        match Repository::new(self.program.clone(), self.dir(id)).clear_leftovers().await {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => tracing::warn!(repository = %id, ?removed, "removed what a killed git left behind"),
            Err(error) => tracing::error!(repository = %id, %error, "failed to look for what a killed git left behind"),
        }
    }

    /// Moves refs of one repository: all, or none. A move that died leaves no
    /// locks, which would refuse every later one.
    pub async fn move_refs(&self, git: &Repository, updates: &[RefUpdate]) -> Result<Moved, GitError> {
        let moving = self.moving.read().await;
        let moved = git.move_refs(updates).await;
        drop(moving);
        if moved.is_err() {
            let _alone = self.moving.write().await;
            git.unlock(updates);
        }
        moved
    }

    pub fn deleted_folder(&self) -> PathBuf {
        self.folder.join(DELETED_FOLDER)
    }

    /// Moves the directory of a deleted repository to where it is kept.
    pub fn put_away(&self, id: &RepositoryId) -> Result<(), HostingError> {
        let dir = self.dir(id);
        if !dir.exists() {
            return Ok(());
        }
        let folder = self.deleted_folder().join(&*id.namespace);
        create_folder(&folder)?;
        let path = deleted::place(&folder, &id.name, self.clock.now().timestamp());
        std::fs::rename(&dir, &path).map_err(|source| HostingError::PutAway { path, source })
    }

    fn dir(&self, id: &RepositoryId) -> PathBuf {
        self.folder.join(&*id.namespace).join(format!("{}.git", id.name))
    }

    /// As its object says now; `None` if there is none.
    pub fn as_stored(&self, id: &RepositoryId) -> Result<Option<Hosted>, StoreError> {
        Ok(self.object(id)?.map(|object| self.describe(id, Some(&object))))
    }

    /// As `object` says, or by default.
    pub fn describe(&self, id: &RepositoryId, object: Option<&Object>) -> Hosted {
        let spec = object.and_then(Object::spec).unwrap_or(&Value::Null);
        let text = |field: &str| spec[field].as_str().unwrap_or_default();
        let branches = [spec["remote"]["branch"].as_str(), spec["branch"].as_str()];
        let branch = branches.into_iter().flatten().find(|branch| !branch.is_empty());
        let own = object.map(Rules::of_repository);
        Hosted {
            id: id.clone(),
            uid: object.and_then(Object::uid).map(str::to_owned),
            remote: RemoteSpec::of(spec),
            git: Repository::new(self.program.clone(), self.dir(id)),
            rules: own.unwrap_or_else(|| Rules::unrestricted(&id.namespace, &id.name)),
            branch: branch.unwrap_or(BRANCH_DEFAULT).into(),
            path: text("path").trim_end_matches('/').into(),
            allow_force: spec["allowForce"].as_bool().unwrap_or(false),
        }
    }

    async fn make(&self, hosted: &Hosted) -> Result<(), HostingError> {
        let _making = self.making.lock().await;
        let dir = hosted.git.dir();
        let head = std::fs::read_to_string(dir.join("HEAD")).unwrap_or_default();
        let is_whole = dir.join("config").exists() && head.trim_end().strip_prefix(HEAD_PREFIX) == Some(&hosted.branch);
        if is_whole {
            return Ok(());
        }
        if let Some(parent) = dir.parent() {
            create_folder(parent)?;
        }
        hosted.git.init(&hosted.branch).await?;
        tracing::info!(repository = %hosted.id, branch = hosted.branch, "the repository is set up");
        Ok(())
    }
}

fn create_folder(path: &Path) -> Result<(), HostingError> {
    std::fs::create_dir_all(path).map_err(|source| HostingError::Folder { path: path.to_owned(), source })
}
