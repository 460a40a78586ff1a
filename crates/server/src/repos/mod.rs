//! Git repositories, hosted and remote: where they are, who may reach them, and
//! how a push or a fetch becomes objects.
//!
//! Invariants: what a push changes is admitted before its ref moves, and is in
//! force when the push returns; whatever happens in between, the next look at
//! the repository ([`Projector::catch_up`]) does the same work once more.

mod answer;
mod body;
mod change;
mod concerned;
mod deleted;
mod follow;
mod gunzip;
mod hosting;
mod http;
mod id;
mod limits;
mod mark;
mod note;
mod objections;
mod pace;
mod pack;
mod projector;
mod receive;
mod remote;
mod retire;
#[cfg(test)]
mod tests;
mod verify;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use tidegate_git::{GitError, Program, Remote};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::api::{Api, Repositories, Requesting, Syncing};
use crate::identity::Clock;
use crate::metrics::Metrics;
use deleted::Deleted;
use follow::Follower;
pub use hosting::HostingError;
use hosting::{Hosted, Hosting};
pub use http::{limits, routes};
pub use id::RepositoryId;
pub use limits::HostedLimits;
use note::Noter;
pub use projector::Projector;
use projector::ProjectorError;
use receive::Receiver;
pub use remote::{RemoteOptions, limits as webhook_limits, routes as webhook_routes};
use remote::{Syncer, request_sync};
pub use tidegate_git::{PlainHttp, RemoteLimits};
pub use verify::{Report, Sort};

#[derive(Clone, Debug)]
pub struct Options {
    pub git: PathBuf,
    /// The `PATH` of git.
    pub search_path: OsString,
    pub remote: RemoteOptions,
    pub limits: HostedLimits,
}

impl Options {
    /// Everything else as it is by default.
    pub fn new(search_path: OsString) -> Self {
        let (remote, limits) = Default::default();
        Self { git: "git".into(), search_path, remote, limits }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReposError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Hosting(#[from] HostingError),
    #[error("failed to remove credentials that a killed process left in {}", path.display())]
    Sweep { path: PathBuf, source: std::io::Error },
}

/// The repositories of one server, until it is dropped.
pub struct Repos {
    hosting: Arc<Hosting>,
    projector: Arc<Projector>,
    syncer: Arc<Syncer>,
    tidying: Arc<Semaphore>,
    limits: HostedLimits,
    metrics: Arc<Metrics>,
    tasks: [JoinHandle<()>; 3],
}

impl Repos {
    /// When it returns, every repository is projected, or the projector's
    /// health says which is not and why.
    pub async fn start(
        api: &Api,
        data_dir: &Path,
        metrics: Arc<Metrics>,
        options: Options,
    ) -> Result<Arc<Self>, ReposError> {
        let Options { git, search_path, remote, limits } = options;
        // Git runs elsewhere, so it needs whole paths.
        let whole = data_dir.canonicalize();
        let data_dir = whole.map_err(|source| HostingError::Folder { path: data_dir.to_owned(), source })?;
        let program = Program { git, search_path, home: data_dir.clone() };
        let clock = Clock::system();
        program.check().await?;
        Remote::sweep(&program).map_err(|source| ReposError::Sweep { path: data_dir.clone(), source })?;
        let hosting = Arc::new(Hosting::open(api.clone(), &data_dir, program, clock.clone())?);
        hosting.end_orphans().await;
        let noter = Arc::new(Noter::default());
        let projector = Projector::new(api.clone(), hosting.clone(), noter.clone(), metrics.clone(), limits);
        let projector = Arc::new(projector.with_plain_http(remote.plain_http));
        let syncer = Arc::new(Syncer::new(hosting.clone(), projector.clone(), metrics.clone(), remote));
        // Before the first look: what changes during it is looked at again.
        let from = api.store().view().version();
        // What was deleted before what is there: it may have the same name.
        let deleted = Deleted::new(hosting.clone(), projector.clone(), limits.deleted_grace, clock.clone());
        deleted.put_away().await;
        for id in hosting.list().map_err(HostingError::Store)? {
            hosting.clear_leftovers(&id).await;
            projector.catch_up_or_report(&hosting, &id).await;
        }
        let follower = Follower { store: api.store().clone(), hosting: hosting.clone(), projector: projector.clone() };
        let noting = api.clone();
        let note_task = tokio::spawn(async move { noter.run(&noting).await });
        let tasks = [tokio::spawn(follower.run(from)), note_task, tokio::spawn(deleted.run())];
        let tidying = Arc::new(Semaphore::new(1));
        let repos = Arc::new(Self { hosting, projector, syncer, tidying, limits, metrics, tasks });
        let weak: Weak<Self> = Arc::downgrade(&repos);
        api.serve_repositories(weak);
        Ok(repos)
    }

    fn hosting(&self) -> &Hosting {
        &self.hosting
    }

    /// As [`Hosting::find`], once a deleted one of the same name is put away.
    async fn find(&self, id: &RepositoryId) -> Result<Option<Hosted>, ProjectorError> {
        self.projector.retire(&self.hosting, id).await?;
        Ok(self.hosting.find(id).await?)
    }

    fn receiver(&self) -> Receiver {
        Receiver {
            hosting: self.hosting.clone(),
            projector: self.projector.clone(),
            metrics: self.metrics.clone(),
            limits: self.limits,
            tidying: self.tidying.clone(),
        }
    }

    fn syncer(&self) -> &Syncer {
        &self.syncer
    }

    pub fn projector(&self) -> &Arc<Projector> {
        &self.projector
    }
}

impl Repositories for Repos {
    fn sync<'a>(&'a self, namespace: &'a str, name: &'a str) -> Syncing<'a> {
        Box::pin(async move { self.syncer.sync(&RepositoryId::new(namespace, name)?).await })
    }

    fn request<'a>(&'a self, namespace: &'a str, name: &'a str) -> Requesting<'a> {
        Box::pin(async move {
            match RepositoryId::new(namespace, name) {
                Some(id) => request_sync(&self.projector.api, &id, || self.syncer.is_syncing(&id)).await,
                None => Ok(()),
            }
        })
    }
}

impl Drop for Repos {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
