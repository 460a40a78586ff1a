//! The one place that knows who may do what right now.
//!
//! Invariants: readers never wait (they take a snapshot); the generation
//! moves after a change is in force, so whoever sees it move and asks again
//! gets the new answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_model::{Object, ObjectKey};
use tokio::sync::watch;

use super::accounts::{AccountIndex, is_account};
use super::attributes::Attributes;
use super::error::{AuthError, IssueError};
use super::policy::Policy;
use super::role::RBAC_GROUP;
use super::session::Session;
use super::tokens::{IssuedToken, Tokens};

/// An open watch looks at the wall clock at least this often, because a
/// suspended machine's timers stand still while tokens expire.
const EXPIRY_CHECK_INTERVAL_MAX: Duration = Duration::from_secs(60);

pub struct Identities {
    tokens: Tokens,
    policy: ArcSwap<Policy>,
    accounts: ArcSwap<AccountIndex>,
    generation: watch::Sender<u64>,
    /// Held by whoever replaces a snapshot, so that no change is lost.
    writer: Mutex<()>,
}

impl Identities {
    pub fn new(tokens: Tokens) -> Self {
        Self {
            tokens,
            policy: ArcSwap::default(),
            accounts: ArcSwap::default(),
            generation: watch::Sender::new(0),
            writer: Mutex::new(()),
        }
    }

    /// Whether a change of this object has to be given to [`Self::apply`].
    pub fn concerns(key: &ObjectKey) -> bool {
        is_account(key) || *key.resource.group == *RBAC_GROUP
    }

    /// Takes over what one commit changed; `None` for a deleted object.
    /// Objects that do not concern identity are passed over.
    pub fn apply<'a>(&self, changes: impl IntoIterator<Item = (&'a ObjectKey, Option<&'a Object>)>) {
        let changes: Vec<_> = changes.into_iter().filter(|(key, _)| Self::concerns(key)).collect();
        if changes.is_empty() {
            return;
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let policy_changed = self.apply_policy(&changes);
        let accounts_changed = self.apply_accounts(&changes);
        if policy_changed || accounts_changed {
            self.generation.send_modify(|generation| *generation += 1);
        }
    }

    fn apply_policy(&self, changes: &[(&ObjectKey, Option<&Object>)]) -> bool {
        if changes.iter().all(|(key, _)| is_account(key)) {
            return false;
        }
        let mut policy = Policy::clone(&self.policy.load());
        let changed = policy.apply_all(changes.iter().copied());
        for (key, problem) in changes.iter().flat_map(|(key, _)| policy.problems_of(key).map(move |p| (key, p))) {
            tracing::warn!(%key, %problem, "a part of an RBAC object grants nothing");
        }
        self.policy.store(Arc::new(policy));
        changed
    }

    fn apply_accounts(&self, changes: &[(&ObjectKey, Option<&Object>)]) -> bool {
        if !changes.iter().any(|(key, _)| is_account(key)) {
            return false;
        }
        let mut accounts = AccountIndex::clone(&self.accounts.load());
        let changed = changes.iter().fold(false, |changed, (key, object)| accounts.apply(key, *object) || changed);
        self.accounts.store(Arc::new(accounts));
        changed
    }

    /// Whose token it is, if it is good now.
    pub fn authenticate(&self, token: &str) -> Result<Session, AuthError> {
        self.tokens.authenticate(&**self.accounts.load(), token)
    }

    /// Whether the session's token is still good.
    pub fn check(&self, session: &Session) -> Result<(), AuthError> {
        self.tokens.check(&**self.accounts.load(), session)
    }

    pub fn allows(&self, session: &Session, attributes: &Attributes) -> bool {
        self.policy.load().allows(session.identity(), attributes)
    }

    /// As [`Self::allows`], with the error that the caller is told.
    pub fn authorize(&self, session: &Session, attributes: &Attributes) -> Result<(), AuthError> {
        if self.allows(session, attributes) { Ok(()) } else { Err(forbidden(session, attributes.to_string())) }
    }

    /// For the paths that are not resources: `/metrics`.
    pub fn authorize_url(&self, session: &Session, verb: &str, path: &str) -> Result<(), AuthError> {
        let allowed = self.policy.load().allows_url(session.identity(), verb, path);
        if allowed { Ok(()) } else { Err(forbidden(session, format!("{verb} {path}"))) }
    }

    /// A new token for a service account; whether the caller may have it is
    /// `create` on `serviceaccounts/token`, which the caller checks.
    pub fn issue(&self, namespace: &str, name: &str, ttl: Duration) -> Result<IssuedToken, IssueError> {
        self.tokens.issue(&**self.accounts.load(), namespace, name, ttl)
    }

    /// Moves with every change of the policy or of an account.
    pub fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Resolves when what the session has open must end, and says why.
    pub async fn until_revoked(&self, session: &Session, attributes: &Attributes) -> AuthError {
        let mut generation = self.generation.subscribe();
        loop {
            // Before the check: a change during it wakes us again.
            generation.borrow_and_update();
            if let Err(error) = self.check(session).and_then(|()| self.authorize(session, attributes)) {
                return error;
            }
            tokio::select! {
                _ = generation.changed() => {}
                () = self.expiry_check_due(session) => {}
            }
        }
    }

    async fn expiry_check_due(&self, session: &Session) {
        let Some(at) = session.identity().expires_at else { return std::future::pending().await };
        let left = (at - self.tokens.now()).to_std().unwrap_or_default();
        tokio::time::sleep(left.min(EXPIRY_CHECK_INTERVAL_MAX)).await;
    }
}

fn forbidden(session: &Session, action: String) -> AuthError {
    AuthError::Forbidden { user: session.identity().user.to_string(), action }
}
