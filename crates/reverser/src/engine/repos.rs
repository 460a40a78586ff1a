//! Each GitRepoConfig's way to its remote: the address and the Secret, read
//! by name and read again now and then, never held in a cache of all Secrets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tidegate_git::credentials::SecretFiles;
use tidegate_git::{Access, PlainHttp, Remote, RemoteError, RemoteLimits, RemoteUrl, Repository};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::Options;
use super::state::{Engine, Msg};
use crate::branch::remote_failure;
use crate::claims::TypeId;
use crate::cluster::{Api, object};
use crate::config::{GitRepoConfig, Glob, Id, Problem, Reason};

/// How soon a changed Secret is noticed, and a remote asked again that nobody
/// mirrors to and that did not answer.
pub(super) const SECRET_INTERVAL: Duration = Duration::from_secs(10);
/// How often a remote that nobody mirrors to, and that answered, is asked.
const PROBE_INTERVAL: Duration = Duration::from_secs(300);

pub(super) type RepoState = Result<Remote, Problem>;

/// What is known of a remote that no branch of ours talks to: the branches
/// that are allowed and there, or none because it is empty.
pub(super) type Probed = Result<Vec<String>, Problem>;

pub(super) enum RepoTold {
    Way(Box<RepoState>),
    Probed(Probed),
}

pub(super) struct Repo {
    spec: GitRepoConfig,
    task: AbortHandle,
    /// Whether a branch is used: then that one tells how the remote is.
    is_used: Arc<AtomicBool>,
    pub state: Option<RepoState>,
    pub probed: Option<Probed>,
}

impl Drop for Repo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Engine {
    /// Reads the Secrets of the repositories that are in force.
    pub(super) fn follow_repos(&mut self) {
        let in_force = |id: &Id| {
            let is_valid = matches!(self.desired.repos.get(id), Some(Ok(())));
            self.config.repos.get(id).filter(|_| is_valid)?.spec.as_ref().ok()
        };
        self.repos.retain(|id, repo| in_force(id) == Some(&repo.spec));
        let wanted: Vec<_> = self.config.repos.keys().filter(|id| !self.repos.contains_key(id)).collect();
        let started: Vec<_> = wanted.into_iter().filter_map(|id| Some((id.clone(), in_force(id)?.clone()))).collect();
        for (id, spec) in started {
            let is_used = Arc::new(AtomicBool::new(self.has_destination(&id)));
            let follower = Follower {
                api: self.parts.api.clone(),
                options: self.parts.options.clone(),
                id: id.clone(),
                spec: spec.clone(),
                is_used: is_used.clone(),
                turns: self.turns_all.clone(),
                to: self.messages.clone(),
            };
            let task = self.tasks.spawn(follower.run());
            self.repos.insert(id, Repo { spec, task, is_used, state: None, probed: None });
        }
        let used: BTreeSet<_> = self.repos.keys().filter(|id| self.has_destination(id)).cloned().collect();
        self.repos.iter().for_each(|(id, repo)| repo.is_used.store(used.contains(id), Ordering::Release));
    }

    fn has_destination(&self, repo: &Id) -> bool {
        self.desired.destinations.values().flatten().any(|plan| plan.repo == *repo)
    }

    pub(super) async fn hear_repo(&mut self, id: &Id, told: RepoTold) {
        let Some(repo) = self.repos.get_mut(id) else { return };
        let state = match told {
            RepoTold::Probed(probed) => return repo.probed = Some(probed),
            RepoTold::Way(state) => *state,
        };
        if let Ok(remote) = &state {
            let of_repo = self.branches.iter().filter(|(key, _)| key.repo == *id);
            of_repo.for_each(|(_, branch)| branch.set_remote(remote.clone()));
        }
        repo.state = Some(state);
        let desired = self.desired.clone();
        self.follow_destinations(&desired).await;
        self.seed();
    }
}

/// Reads the Secret now and then, and asks a remote that nobody else asks.
struct Follower {
    api: Api,
    options: Options,
    id: Id,
    spec: GitRepoConfig,
    is_used: Arc<AtomicBool>,
    turns: Arc<Semaphore>,
    to: mpsc::Sender<Msg>,
}

impl Follower {
    async fn run(self) {
        let mut told = None;
        let mut probed: Option<(Probed, Instant)> = None;
        loop {
            let state = read(&self.api, &self.id, &self.spec, self.options.plain_http).await;
            let way = state.as_ref().map(|remote| (remote.url.clone(), remote.access.clone())).map_err(Clone::clone);
            if told.as_ref() != Some(&way) {
                (told, probed) = (Some(way), None);
                self.tell(RepoTold::Way(Box::new(state.clone()))).await;
            }
            let is_known = probed.as_ref().is_some_and(|(probed, at)| probed.is_ok() && at.elapsed() < PROBE_INTERVAL);
            if let (Ok(remote), false) = (&state, is_known || self.is_used.load(Ordering::Acquire)) {
                let found = self.probe(remote).await;
                let is_new = probed.as_ref().is_none_or(|(before, _)| *before != found);
                probed = Some((found.clone(), Instant::now()));
                if is_new {
                    self.tell(RepoTold::Probed(found)).await;
                }
            }
            sleep(SECRET_INTERVAL).await;
        }
    }

    async fn tell(&self, told: RepoTold) {
        let _ = self.to.send(Msg::Repo(self.id.clone(), told)).await;
    }

    /// A turn as any branch takes: many repositories are not asked at once.
    async fn probe(&self, remote: &Remote) -> Probed {
        let _turn = self.turns.acquire().await;
        let program = self.options.program.clone();
        let repository = Repository::new(program.clone(), program.home);
        let failed = |error: RemoteError| {
            let message = format!("spec.repoUrl: {}", told(&error));
            Problem::new(super::report::repo_reason(remote_failure(&error)), message)
        };
        let patterns: Vec<_> = self.spec.allowed_branches.iter().map(|pattern| Glob::widened(pattern)).collect();
        let found = repository.remote_branches(remote, &patterns).await.map_err(failed)?;
        let globs: Vec<_> = self.spec.allowed_branches.iter().filter_map(|pattern| Glob::new(pattern).ok()).collect();
        let allowed: Vec<_> = found.into_iter().filter(|name| globs.iter().any(|glob| glob.matches(name))).collect();
        if allowed.is_empty() && !repository.is_remote_empty(remote).await.map_err(failed)? {
            let message = format!(
                "the repository has no branch `{}`: create it, or correct spec.allowedBranches",
                self.spec.allowed_branches.join("`, `")
            );
            return Err(Problem::new(Reason::BranchNotFound, message));
        }
        Ok(allowed)
    }
}

fn told(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", told(source)))
}

async fn read(api: &Api, id: &Id, spec: &GitRepoConfig, plain: PlainHttp) -> RepoState {
    let url = RemoteUrl::parse(&spec.repo_url, plain)
        .map_err(|error| Problem::new(Reason::InvalidUrl, format!("spec.repoUrl: {error}")))?;
    let files = match &spec.secret_ref {
        Some(reference) => Some(read_secret(api, &id.namespace, &reference.name).await?),
        None => None,
    };
    let access = Access::read(files.as_ref(), &url).map_err(|error| {
        let secret =
            spec.secret_ref.as_ref().map_or("spec.secretRef".into(), |secret| format!("Secret {}", secret.name));
        Problem::new(Reason::SecretMalformed, format!("{secret}: {error}"))
    })?;
    Ok(Remote { url, access, limits: RemoteLimits::default() })
}

pub(super) async fn read_secret(api: &Api, namespace: &str, name: &str) -> Result<SecretFiles, Problem> {
    let path = object(&TypeId::new("", "v1", "secrets"), Some(namespace), name);
    let secret = api.get(&path).await.map_err(|error| {
        let message = match error.is_not_found() {
            true => format!("Secret {namespace}/{name} does not exist: create it, or correct the reference"),
            false => format!("Secret {namespace}/{name} cannot be read: {}", error.told()),
        };
        Problem::new(Reason::SecretNotFound, message)
    })?;
    let data = secret.get("data").and_then(Value::as_object);
    let files = data.into_iter().flatten().map(|(name, value)| {
        let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
        bytes.map(|bytes| (name.clone(), bytes))
    });
    files.collect::<Option<_>>().ok_or_else(|| {
        Problem::new(Reason::SecretMalformed, format!("Secret {namespace}/{name} holds what is not base64"))
    })
}
