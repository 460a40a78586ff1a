//! An accepted token, as long as something open depends on it.
//!
//! Invariant: it holds no token, only what is needed to ask again whether the
//! token is still good.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Identity;
use super::accounts::Accounts;
use super::error::AuthError;

/// Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session(Arc<Inner>);

#[derive(PartialEq, Eq, Debug)]
struct Inner {
    identity: Identity,
    origin: Origin,
}

#[derive(PartialEq, Eq, Debug)]
enum Origin {
    /// The admin token, which is revoked by a restart only, or a part of this
    /// process, which has no token.
    Process,
    ServiceAccount {
        namespace: Box<str>,
        name: Box<str>,
    },
}

impl Session {
    pub fn admin() -> Self {
        Self(Arc::new(Inner { identity: Identity::admin(), origin: Origin::Process }))
    }

    /// For a part of this process that calls the API under its own identity.
    pub fn internal(identity: Identity) -> Self {
        Self(Arc::new(Inner { identity, origin: Origin::Process }))
    }

    pub(super) fn service_account(namespace: &str, name: &str, identity: Identity) -> Self {
        let origin = Origin::ServiceAccount { namespace: namespace.into(), name: name.into() };
        Self(Arc::new(Inner { identity, origin }))
    }

    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// Whether the token is good at `now`.
    pub(super) fn check(&self, accounts: &impl Accounts, now: DateTime<Utc>) -> Result<(), AuthError> {
        let identity = self.identity();
        if let Some(at) = identity.expires_at.filter(|at| *at <= now) {
            return Err(AuthError::Expired { at });
        }
        let Origin::ServiceAccount { namespace, name } = &self.0.origin else { return Ok(()) };
        // The uid too: an account that was deleted and made anew is another.
        let account = accounts.account(namespace, name).filter(|account| Some(&account.uid) == identity.uid.as_ref());
        let Some(account) = account else {
            return Err(AuthError::AccountGone { namespace: namespace.to_string(), name: name.to_string() });
        };
        match &identity.token_id {
            Some(id) if account.revoked.contains(&**id) => Err(AuthError::Revoked { token_id: id.to_string() }),
            _ => Ok(()),
        }
    }
}
