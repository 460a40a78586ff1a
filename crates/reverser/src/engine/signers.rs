//! The keys that commits are signed with: Secrets, read by name and read again
//! now and then, beside the engine. An API server that is slow to answer for
//! one holds up nobody else.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_git::Signer;
use tidegate_git::credentials::SecretFiles;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::repos::{SECRET_INTERVAL, read_secret};
use super::state::{Engine, Msg};
use crate::cluster::Api;
use crate::config::{GitDestination, Id, Problem, Reason};
use crate::signing::SigningKey;

pub(super) type SignerState = Result<Arc<dyn Signer>, Problem>;

pub(super) struct SignerWatch {
    task: AbortHandle,
    /// `None` until it was read.
    pub state: Option<SignerState>,
}

impl Drop for SignerWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The Secret that a destination's commits are signed with.
pub(super) fn signing_secret(destination: &Id, spec: &GitDestination) -> Option<Id> {
    Some(Id::new(&destination.namespace, &spec.commit.signing.as_ref()?.secret_ref.name))
}

impl Engine {
    /// Reads the Secrets that destinations in force name.
    pub(super) fn follow_signers(&mut self) {
        let planned = self.desired.destinations.iter();
        let wanted: BTreeSet<_> =
            planned.filter_map(|(id, plan)| signing_secret(id, &plan.as_ref().ok()?.spec)).collect();
        self.signers.retain(|secret, _| wanted.contains(secret));
        for secret in wanted {
            if !self.signers.contains_key(&secret) {
                let following = follow(self.parts.api.clone(), secret.clone(), self.messages.clone());
                let task = self.tasks.spawn(following);
                self.signers.insert(secret, SignerWatch { task, state: None });
            }
        }
    }

    pub(super) async fn hear_signer(&mut self, secret: &Id, state: SignerState) {
        let Some(watch) = self.signers.get_mut(secret) else { return };
        watch.state = Some(state);
        let desired = self.desired.clone();
        self.follow_destinations(&desired).await;
        self.seed();
    }
}

/// Tells what is new, once.
async fn follow(api: Api, secret: Id, to: mpsc::Sender<Msg>) {
    let mut told: Option<Result<SecretFiles, Problem>> = None;
    loop {
        let files = read_secret(&api, &secret.namespace, &secret.name).await;
        if told.as_ref() != Some(&files) {
            let state = files.as_ref().map_err(Clone::clone).and_then(|files| signer(&secret, files));
            told = Some(files);
            let _ = to.send(Msg::Signer(secret.clone(), state)).await;
        }
        sleep(SECRET_INTERVAL).await;
    }
}

fn signer(secret: &Id, files: &SecretFiles) -> SignerState {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| files.get(*name));
        found.and_then(|bytes| String::from_utf8(bytes.clone()).ok())
    };
    let malformed = |why: String| Problem::new(Reason::SecretMalformed, format!("Secret {secret}: {why}"));
    let key = text(&["ssh-privatekey", "identity"])
        .ok_or_else(|| malformed("there is no `ssh-privatekey`: commits are signed with an SSH key".into()))?;
    let passphrase = text(&["passphrase", "ssh-password"]);
    let key = SigningKey::parse(&key, passphrase.as_deref()).map_err(|error| malformed(error.to_string()))?;
    Ok(Arc::new(key))
}
