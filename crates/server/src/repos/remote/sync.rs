//! A remote repository brought here and into force: fetched, checked and
//! projected as a push would be.
//!
//! Invariants: one sync of a repository at a time. The branch that is served
//! here is what is in force: a commit that is refused moves nothing but the
//! ref that says what was fetched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tidegate_git::credentials::CredentialsError;
use tidegate_git::{Access, FetchError, ObjectId, PlainHttp, Remote, RemoteLimits, RemoteUrl, UrlError};
use tokio::sync::Semaphore;

use super::secrets::{SecretError, Secrets};
use super::spec::RemoteSpec;
use super::webhook::WEBHOOK_KEY;
use crate::api::{SyncOutcome, Synced};
use crate::metrics::Metrics;
use crate::repos::hosting::{Hosted, Hosting, HostingError};
use crate::repos::id::RepositoryId;
use crate::repos::projector::{CaughtUp, Projector, ProjectorError, chain};

/// Each is a git process with its transport, some 20 MiB together.
const FETCHES_MAX: usize = 8;
/// What the remote had at the last fetch, good or not.
const FETCHED_REF: &str = "refs/tidegate/fetched";

#[derive(Clone, Debug)]
pub struct RemoteOptions {
    pub secrets_dir: Option<std::path::PathBuf>,
    pub plain_http: PlainHttp,
    pub limits: RemoteLimits,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self { secrets_dir: None, plain_http: PlainHttp::LoopbackOnly, limits: RemoteLimits::default() }
    }
}

pub struct Syncer {
    hosting: Arc<Hosting>,
    projector: Arc<Projector>,
    pub(super) secrets: Secrets,
    plain_http: PlainHttp,
    limits: RemoteLimits,
    metrics: Arc<Metrics>,
    fetches: Semaphore,
    turns: Mutex<HashMap<RepositoryId, Arc<tokio::sync::Mutex<()>>>>,
}

/// Why there is nothing to project.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("{0}")]
    NoSecret(CredentialsError),
    #[error("the secret {name} is of no use: {source}")]
    Credentials { name: String, source: CredentialsError },
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl SyncError {
    fn reason(&self) -> &'static str {
        match self {
            Self::Url(_) => "InvalidURL",
            Self::NoSecret(_) | Self::Secret(SecretError::NotFound { .. }) => "SecretNotFound",
            Self::Secret(_) | Self::Credentials { .. } => "SecretInvalid",
            Self::Fetch(FetchError::Remote(error)) => error.reason(),
            Self::Fetch(FetchError::Git(_)) => "FetchFailed",
        }
    }
}

impl Syncer {
    pub fn new(
        hosting: Arc<Hosting>,
        projector: Arc<Projector>,
        metrics: Arc<Metrics>,
        options: RemoteOptions,
    ) -> Self {
        let RemoteOptions { secrets_dir, plain_http, limits } = options;
        let (fetches, turns) = (Semaphore::new(FETCHES_MAX), Mutex::default());
        let secrets = Secrets::new(secrets_dir);
        Self { hosting, projector, secrets, plain_http, limits, metrics, fetches, turns }
    }

    /// `None` if there is no such repository. A hosted one is provisioned and
    /// its head is in force afterwards; a remote one is fetched before.
    pub async fn sync(&self, id: &RepositoryId) -> Option<SyncOutcome> {
        let turn = self.turn(id);
        let _turn = turn.lock().await;
        if let Err(error) = self.projector.retire(&self.hosting, id).await {
            return Some(failed(&error));
        }
        let outcome = match self.hosting.find(id).await {
            Ok(None) => return None,
            Ok(Some(hosted)) => match &hosted.remote {
                None => self.catch_up(&hosted).await,
                Some(remote) => self.fetch_and_advance(&hosted, remote).await,
            },
            Err(error) => failed(&error),
        };
        Some(outcome)
    }

    /// Whether a sync is under way, which may have read the remote already.
    pub fn is_syncing(&self, id: &RepositoryId) -> bool {
        self.turn(id).try_lock().is_err()
    }

    async fn catch_up(&self, hosted: &Hosted) -> SyncOutcome {
        let outcome = self.projector.catch_up(hosted).await;
        let head = match hosted.git.head(&hosted.branch).await {
            Ok(head) => head,
            Err(error) => return failed(&error),
        };
        self.told(hosted, head, outcome)
    }

    async fn fetch_and_advance(&self, hosted: &Hosted, remote: &RemoteSpec) -> SyncOutcome {
        let started = Instant::now();
        let fetched = self.fetch(hosted, remote).await;
        let word = fetched.as_ref().map_or_else(SyncError::reason, |_| "Fetched");
        self.metrics.git_fetched(word, started.elapsed());
        let commit = match fetched {
            Ok(commit) => commit,
            Err(error) => {
                let (reason, message) = (error.reason(), error.to_string());
                tracing::warn!(repository = %hosted.id, url = remote.url, reason, message, "the remote gave nothing");
                return SyncOutcome::Failed { reason, message };
            }
        };
        // Whoever changed or deleted the object meanwhile wants something else.
        match self.hosting.find(&hosted.id).await {
            Ok(Some(now)) if now.is_projected_as(hosted) => {
                let outcome = self.projector.advance(&now, &commit).await;
                self.told(&now, Some(commit), outcome)
            }
            Ok(_) => SyncOutcome::Failed {
                reason: "Superseded",
                message: "the Repository was changed or deleted during the fetch".into(),
            },
            Err(error) => failed(&error),
        }
    }

    async fn fetch(&self, hosted: &Hosted, remote: &RemoteSpec) -> Result<ObjectId, SyncError> {
        let url = RemoteUrl::parse(&remote.url, self.plain_http)?;
        let access = self.access(hosted, remote, &url)?;
        let _permit = self.fetches.acquire().await;
        let remote = Remote { url, access, limits: self.limits };
        let commit = hosted.git.fetch(&remote, &hosted.branch, FETCHED_REF).await?;
        if let Err(error) = hosted.git.tidy().await {
            tracing::warn!(repository = %hosted.id, reason = chain(&error), "failed to tidy the repository");
        }
        Ok(commit)
    }

    fn access(&self, hosted: &Hosted, remote: &RemoteSpec, url: &RemoteUrl) -> Result<Access, SyncError> {
        let mut files = match &remote.secret {
            Some(name) => Some(self.secrets.read(&hosted.id.namespace, name)?),
            None => None,
        };
        // It is for those who call us; alone, it is no login.
        let had_webhook = files.as_mut().is_some_and(|files| files.remove(WEBHOOK_KEY).is_some());
        let files = files.filter(|files| !(had_webhook && files.is_empty()));
        let name = remote.secret.clone().unwrap_or_default();
        Access::read(files.as_ref(), url).map_err(|source| match source {
            CredentialsError::NoSecret => SyncError::NoSecret(source),
            source => SyncError::Credentials { name: format!("{}/{name}", hosted.id.namespace), source },
        })
    }

    fn told(
        &self,
        hosted: &Hosted,
        commit: Option<ObjectId>,
        outcome: Result<CaughtUp, ProjectorError>,
    ) -> SyncOutcome {
        let commit = commit.map(|commit| commit.to_string());
        let (version, applied) = match outcome {
            Ok(CaughtUp::Applied(applied, _)) => (applied.version, Some(applied)),
            Ok(CaughtUp::Already(version)) => (version, None),
            Ok(CaughtUp::Refused(problems)) => return SyncOutcome::Refused { commit, problems },
            Err(ProjectorError::Git(error)) if error.is_of_the_commit() => {
                return SyncOutcome::Refused { commit, problems: vec![error.to_string()] };
            }
            Err(error) => return failed(&error),
        };
        match self.projector.tally(&hosted.id) {
            Ok(tally) => {
                let (objects, files) = tally.map(|tally| (tally.objects, tally.files)).unzip();
                SyncOutcome::InForce(Synced { commit, version, applied, objects, files })
            }
            Err(error) => failed(&error),
        }
    }

    fn turn(&self, id: &RepositoryId) -> Arc<tokio::sync::Mutex<()>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default().clone()
    }
}

impl Hosted {
    /// Whether a commit that was fetched for `other` is one for this, too.
    fn is_projected_as(&self, other: &Self) -> bool {
        self.uid == other.uid && self.remote == other.remote && self.branch == other.branch
    }
}

/// Our failure, not the remote's.
fn failed(error: &(dyn std::error::Error + 'static)) -> SyncOutcome {
    let reason = if error.is::<HostingError>() { "ProvisioningFailed" } else { "ProjectionFailed" };
    SyncOutcome::Failed { reason, message: chain(error) }
}
