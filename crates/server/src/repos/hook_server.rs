//! The server's side of git's hooks: may this push move the branch, and what
//! became of it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tidegate_git::{GitError, ObjectId, Quarantine, Repository};
use tidegate_model::ResourceVersion;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::ReposError;
use super::hook::{Hook, HookAnswer, HookCall, RefUpdate};
use super::hosting::{Hosted, Hosting};
use super::id::RepositoryId;
use super::projector::{Asked, CaughtUp, Projector, ProjectorError, chain};
use super::pushes::PushId;
use crate::metrics::Metrics;

/// About 20,000 refs in one push.
const CALL_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone)]
pub struct HookServer {
    hosting: Arc<Hosting>,
    projector: Arc<Projector>,
    listener: Arc<UnixListener>,
    metrics: Arc<Metrics>,
}

impl HookServer {
    /// In the data directory, which nobody else may enter.
    pub fn listen(
        path: &Path,
        hosting: Arc<Hosting>,
        projector: Arc<Projector>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ReposError> {
        // Left by a server that was killed; the store's lock says it is gone.
        let _ = std::fs::remove_file(path);
        let bound = UnixListener::bind(path);
        let listener = bound.map_err(|source| ReposError::Socket { path: path.to_owned(), source })?;
        Ok(Self { hosting, projector, listener: Arc::new(listener), metrics })
    }

    /// As many at once as there are pushes, which are limited.
    pub async fn run(self) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let server = self.clone();
                    tokio::spawn(async move { server.answer(stream).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a hook's connection");
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn answer(&self, mut stream: UnixStream) {
        let answered = async {
            let call = read_call(&mut stream).await?;
            let started = Instant::now();
            let decided = self.decide(&call).await;
            let accepted = decided.as_ref().ok().map(|answer| answer.accepted);
            if let Some(outcome) = outcome(call.hook, accepted) {
                self.metrics.git_pushed(outcome);
            }
            self.metrics.git_hook_answered(call.hook.name(), started.elapsed());
            let answer = decided.unwrap_or_else(|error| {
                let reason = chain(&error);
                tracing::error!(repository = call.repository, hook = call.hook.name(), reason, "a hook failed");
                refused(vec![format!("the server failed, nothing was decided: {reason}")])
            });
            stream.write_all(&serde_json::to_vec(&answer)?).await
        };
        if let Err(error) = answered.await {
            tracing::warn!(%error, "failed to answer a hook");
        }
    }

    async fn decide(&self, call: &HookCall) -> Result<HookAnswer, ProjectorError> {
        let id = RepositoryId::parse(&call.repository);
        let hosted = match &id {
            Some(id) => self.hosting.find(id).await?,
            None => None,
        };
        let Some(hosted) = hosted else {
            return Ok(refused(vec![format!("there is no repository {}", call.repository)]));
        };
        let Some(push) = PushId::parse(&call.push) else {
            return Ok(refused(vec!["this is no push through the server: push to its address".into()]));
        };
        if let (Hook::PreReceive, Some(update)) = (call.hook, call.updates.iter().find(|update| update.replaces())) {
            return Ok(refused(vec![format!("{}: replacements of objects are not stored here", update.name)]));
        }
        let branch = format!("refs/heads/{}", hosted.branch);
        match (call.hook, call.updates.iter().find(|update| update.name == branch)) {
            (Hook::PreReceive, update) => {
                let git = quarantined(&hosted, call);
                // The first of the two is another process: they run side by side.
                let (bad, answer) = tokio::join!(fsck(&git, call), self.check(&hosted, &git, update, push));
                let bad = bad?;
                if bad.is_empty() { answer } else { Ok(refused(bad)) }
            }
            (Hook::PostReceive, None) => Ok(accepted(vec![format!("stored; only {} is projected", hosted.branch)])),
            (Hook::PostReceive, Some(update)) => {
                let commit = ObjectId::parse(&update.new);
                Ok(tell(self.projector.finish(&hosted, push, commit.as_ref()).await?))
            }
        }
    }

    async fn check(
        &self,
        hosted: &Hosted,
        git: &Repository,
        update: Option<&RefUpdate>,
        push: PushId,
    ) -> Result<HookAnswer, ProjectorError> {
        let Some(update) = update else { return Ok(accepted(Vec::new())) };
        // It became one after the push began.
        if let Some(remote) = &hosted.remote {
            return Ok(refused(vec![remote.push_refused(&hosted.id)]));
        }
        let (old, new) = (ObjectId::parse(&update.old), ObjectId::parse(&update.new));
        let asked = Asked { hosted, git, old, new: new.clone() };
        let problems = match (self.check_commit(asked, push).await, new) {
            // Looked at only then: a push is not to wait for one more process.
            (Err(ProjectorError::Git(error)), Some(new)) => no_commit(git, &hosted.branch, &new).await?.ok_or(error)?,
            (problems, _) => problems?,
        };
        Ok(if problems.is_empty() { accepted(Vec::new()) } else { refused(problems) })
    }

    async fn check_commit(&self, asked: Asked<'_>, push: PushId) -> Result<Vec<String>, ProjectorError> {
        if !asked.hosted.allow_force {
            let keeps_history = match (&asked.old, &asked.new) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(old), Some(new)) => asked.git.is_ancestor(old, new).await?,
            };
            if !keeps_history {
                return Ok(vec![rewritten(&asked.hosted.branch, asked.new.is_none())]);
            }
        }
        self.projector.check(asked, push).await
    }
}

/// The repository with what the push brings.
fn quarantined(hosted: &Hosted, call: &HookCall) -> Repository {
    let text = |text: &Option<String>| text.clone().unwrap_or_default().into();
    match &call.object_directory {
        Some(_) => hosted.git.with_quarantine(Quarantine {
            object_directory: text(&call.object_directory),
            alternates: text(&call.alternates),
        }),
        None => hosted.git.clone(),
    }
}

/// Of all refs that are pushed, projected or not: what is here can be cloned.
async fn fsck(git: &Repository, call: &HookCall) -> Result<Vec<String>, GitError> {
    if call.owes_fsck { git.fsck_push().await } else { Ok(Vec::new()) }
}

/// Why git cannot work with what the branch would be; `None` if that is a
/// commit, and the reason another.
async fn no_commit(git: &Repository, branch: &str, new: &ObjectId) -> Result<Option<Vec<String>>, GitError> {
    let problem = match git.sort_of(new).await?.as_deref() {
        Some("commit") => return Ok(None),
        Some(sort) => format!("{branch}: {new} is a {sort} and no commit: push a commit"),
        None => format!("{branch}: the push does not bring {new}, nor is it here: fetch, and push again"),
    };
    Ok(Some(vec![problem]))
}

/// What a push came to, once it is known; `None` for an answer that is a
/// failure of ours.
fn outcome(hook: Hook, accepted: Option<bool>) -> Option<&'static str> {
    match (hook, accepted) {
        (Hook::PreReceive, Some(true)) => None,
        (Hook::PreReceive, Some(false)) => Some("refused"),
        (Hook::PostReceive, Some(true)) => Some("accepted"),
        (Hook::PostReceive, Some(false)) => Some("not_in_force"),
        (_, None) => Some("failed"),
    }
}

async fn read_call(stream: &mut UnixStream) -> io::Result<HookCall> {
    let mut bytes = Vec::new();
    stream.take(CALL_BYTES_MAX).read_to_end(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn rewritten(branch: &str, is_deleted: bool) -> String {
    let what = if is_deleted { "would be deleted" } else { "would lose commits" };
    format!(
        "{branch} is projected and {what}: push a commit that undoes the change, or set spec.allowForce on the Repository"
    )
}

fn accepted(lines: Vec<String>) -> HookAnswer {
    HookAnswer { accepted: true, lines }
}

fn refused(mut lines: Vec<String>) -> HookAnswer {
    lines.push("refused: nothing has changed".into());
    HookAnswer { accepted: false, lines }
}

fn tell(outcome: CaughtUp) -> HookAnswer {
    match outcome {
        CaughtUp::Applied(applied, warnings) => {
            let mut lines: Vec<String> = warnings.iter().map(|warning| format!("warning: {warning}")).collect();
            lines.push(summary(applied.created, applied.updated, applied.deleted, applied.version));
            accepted(lines)
        }
        CaughtUp::Already(version) => accepted(vec![summary(0, 0, 0, version)]),
        CaughtUp::Refused(mut lines) => {
            lines
                .push("stored, but not in force: another change came first; push a commit that mends the above".into());
            HookAnswer { accepted: false, lines }
        }
    }
}

fn summary(created: usize, updated: usize, deleted: usize, version: ResourceVersion) -> String {
    format!("+{created} ~{updated} -{deleted} objects, resourceVersion {version}")
}
