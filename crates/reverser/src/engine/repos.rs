//! Each GitRepoConfig's way to its remote: the address and the Secret, read
//! by name and read again now and then, never held in a cache of all Secrets.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tidegate_git::credentials::SecretFiles;
use tidegate_git::{Access, PlainHttp, Remote, RemoteLimits, RemoteUrl};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::state::{Engine, Msg};
use crate::claims::TypeId;
use crate::cluster::{Api, object};
use crate::config::{GitRepoConfig, Id, Problem, Reason};

/// How soon a changed Secret is noticed.
const SECRET_INTERVAL: Duration = Duration::from_secs(10);

pub(super) type RepoState = Result<Remote, Problem>;

pub(super) struct Repo {
    spec: GitRepoConfig,
    task: AbortHandle,
    pub state: Option<RepoState>,
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
            let (api, plain) = (self.parts.api.clone(), self.parts.options.plain_http);
            let task = self.tasks.spawn(keep_reading(api, id.clone(), spec.clone(), plain, self.messages.clone()));
            self.repos.insert(id, Repo { spec, task, state: None });
        }
    }

    pub(super) async fn hear_repo(&mut self, id: &Id, state: RepoState) {
        let Some(repo) = self.repos.get_mut(id) else { return };
        if let Ok(remote) = &state {
            let of_repo = self.branches.iter().filter(|((repo, _), _)| repo == id);
            of_repo.for_each(|(_, branch)| branch.set_remote(remote.clone()));
        }
        repo.state = Some(state);
        let desired = self.desired.clone();
        self.follow_destinations(&desired).await;
        self.seed();
    }
}

async fn keep_reading(api: Api, id: Id, spec: GitRepoConfig, plain: PlainHttp, to: mpsc::Sender<Msg>) {
    let mut told = None;
    loop {
        let state = read(&api, &id, &spec, plain).await;
        let way = state.as_ref().map(|remote| (remote.url.clone(), remote.access.clone())).map_err(Clone::clone);
        if told.as_ref() != Some(&way) {
            told = Some(way);
            let _ = to.send(Msg::Repo(id.clone(), Box::new(state))).await;
        }
        sleep(SECRET_INTERVAL).await;
    }
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
