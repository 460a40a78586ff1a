//! Repositories, as far as callers act on them: brought up to date on request,
//! and noted on by the server itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;

use serde_json::Value;
use tidegate_model::{GroupResource, Object, ObjectKey, ResourceVersion};
use tidegate_store::StoreError;

use super::error::{ApiError, Code};
use super::status::{decode, not_found};
use super::{Api, Applied, CONTROLLER_MANAGER, StatusWrite};
use crate::identity::{Attributes, Identity, Session, Verb};

/// A note and a controller's status write meet; one of them reads again.
const NOTE_ATTEMPTS_MAX: usize = 16;

pub type Requesting<'a> = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>>;
pub type Syncing<'a> = Pin<Box<dyn Future<Output = Option<SyncOutcome>> + Send + 'a>>;

/// Whoever holds the repositories.
pub trait Repositories: Send + Sync {
    /// `None` if there is no such repository.
    fn sync<'a>(&'a self, namespace: &'a str, name: &'a str) -> Syncing<'a>;

    /// Has the controller look, too, which reports what it finds.
    fn request<'a>(&'a self, namespace: &'a str, name: &'a str) -> Requesting<'a>;
}

/// What became of a look at a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SyncOutcome {
    InForce(Synced),
    /// The last good state stays in force. At most 50 problems, then a count.
    Refused {
        commit: Option<String>,
        problems: Vec<String>,
    },
    /// Nothing was seen of the repository, and nothing has changed.
    Failed {
        reason: &'static str,
        message: String,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synced {
    /// `None` for a branch without commits.
    pub commit: Option<String>,
    pub version: ResourceVersion,
    /// `None` if it was in force already.
    pub applied: Option<Applied>,
    /// How much the repository defines, if that was counted.
    pub objects: Option<u64>,
    pub files: Option<u64>,
}

impl SyncOutcome {
    /// One word, as conditions have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InForce(_) => "InForce",
            Self::Refused { .. } => "Invalid",
            Self::Failed { reason, .. } => reason,
        }
    }

    /// For people.
    pub fn message(&self) -> String {
        match self {
            Self::InForce(Synced { commit: Some(commit), .. }) => format!("{commit} is in force"),
            Self::InForce(_) => "the branch has no commit yet".into(),
            Self::Refused { commit, .. } => {
                let commit = commit.as_deref().unwrap_or("the empty branch");
                format!("{commit} is refused, the last good state stays in force")
            }
            Self::Failed { message, .. } => message.clone(),
        }
    }
}

impl Api {
    /// Once, by whoever starts both.
    pub fn serve_repositories(&self, repositories: Weak<dyn Repositories>) {
        let _ = self.0.repositories.set(repositories);
    }

    /// Returns when it is in force, or with the reason why not.
    pub async fn sync_repository(
        &self,
        session: &Session,
        namespace: &str,
        name: &str,
    ) -> Result<SyncOutcome, ApiError> {
        let key = repository_key(namespace, name);
        self.authorize(session, &Attributes::new(Verb::Sync, &key.resource).namespace(Some(namespace)).name(name))?;
        let repositories = self.0.repositories.get().and_then(Weak::upgrade);
        let repositories = repositories
            .ok_or_else(|| ApiError::new(Code::Unavailable, "the repositories are not open yet: try again"))?;
        let outcome = repositories.sync(namespace, name).await.ok_or_else(|| not_found(&key))?;
        let (account_namespace, account) = CONTROLLER_MANAGER;
        let is_controller = session.identity().user == Identity::service_account(account_namespace, account).user;
        if !is_controller && !self.is_reported(&key, &outcome)? {
            // Whoever asked has the outcome all the same.
            if let Err(error) = repositories.request(namespace, name).await {
                tracing::warn!(%key, %error, "failed to have the outcome of a sync reported");
            }
        }
        Ok(outcome)
    }

    /// What is in force is noted by whoever put it there.
    fn is_reported(&self, key: &ObjectKey, outcome: &SyncOutcome) -> Result<bool, ApiError> {
        let commit = match outcome {
            SyncOutcome::InForce(_) => return Ok(true),
            SyncOutcome::Refused { commit, .. } => commit.as_deref(),
            SyncOutcome::Failed { .. } => None,
        };
        let Some(stored) = self.0.store.view().get(key)? else { return Ok(true) };
        let object = decode(&stored)?;
        let status = object.status();
        let conditions = status.and_then(|status| status.get("conditions")?.as_array());
        let mut synced = conditions.into_iter().flatten().filter(|condition| condition["type"] == "Synced");
        let attempted = status.and_then(|status| status.get("attemptedCommit")?.as_str());
        Ok(synced.any(|condition| condition["reason"] == outcome.reason()) && (commit.is_none() || commit == attempted))
    }

    /// Writes into a Repository's status as the server itself. `patch` sees
    /// the object as it is; `None` leaves it so.
    pub(crate) async fn note_repository(
        &self,
        namespace: &str,
        name: &str,
        patch: impl Fn(&Object) -> Result<Option<Value>, StoreError>,
    ) -> Result<(), ApiError> {
        let key = repository_key(namespace, name);
        let kind = self.kind("tidegate.dev/v1", "Repository")?;
        let mut outcome = Ok(());
        for _ in 0..NOTE_ATTEMPTS_MAX {
            let stored = self.0.store.view().get(&key)?.ok_or_else(|| not_found(&key))?;
            let Some(patch) = patch(&decode(&stored)?)? else { return Ok(()) };
            let write = StatusWrite {
                namespace: Some(namespace.into()),
                name: name.into(),
                resource_version: Some(stored.version.to_string()),
                patch,
            };
            outcome = self.write_status(&kind, &key, write).await.map(drop);
            match &outcome {
                Err(error) if error.code == Code::Conflict => {}
                _ => break,
            }
        }
        outcome
    }
}

fn repository_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("tidegate.dev", "repositories"), Some(namespace), name)
}
