//! Who is calling, and what may they do: tokens, service accounts, RBAC.
//!
//! Invariant: every front end asks [`Identities`], so that a query, an open
//! watch, a WebSocket and a Git push are decided by the same check.

mod accounts;
mod attributes;
mod clock;
#[cfg(test)]
mod docs_tests;
mod error;
mod identities;
#[cfg(test)]
mod identities_tests;
mod policy;
#[cfg(test)]
mod policy_reference;
#[cfg(test)]
mod policy_tests;
mod role;
mod rule;
mod secret_file;
mod session;
mod tokens;
#[cfg(test)]
mod tokens_tests;

use std::sync::Arc;

use chrono::{DateTime, Utc};

pub use accounts::{AccountIndex, AccountState, Accounts};
pub use attributes::{
    Attributes, SUBRESOURCE_FINALIZERS, SUBRESOURCE_QUARANTINE, SUBRESOURCE_STATUS, SUBRESOURCE_TOKEN, Verb,
};
pub use clock::Clock;
pub use error::{AuthError, IssueError, SetupError};
pub use identities::Identities;
pub use policy::Policy;
pub use session::Session;
pub use tokens::{
    ADMIN_TOKEN_FILE, IssuedToken, SIGNING_KEY_FILE, TOKEN_BYTES_MAX, TOKEN_TTL_DEFAULT, TOKEN_TTL_MAX, TOKEN_TTL_MIN,
    Tokens, basic_or_bearer_token, bearer_token,
};

/// Allowed everything, whatever the roles say.
pub const GROUP_MASTERS: &str = "system:masters";
/// Every caller with a valid token.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
/// Every service account; with `:<namespace>` appended, those of a namespace.
pub const GROUP_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
pub const USER_ADMIN: &str = "system:admin";

/// A caller whose token was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    pub user: Arc<str>,
    pub groups: Vec<Arc<str>>,
    /// The ServiceAccount's uid; `None` for the admin.
    pub uid: Option<Arc<str>>,
    /// The id by which the token is revoked; `None` for the admin.
    pub token_id: Option<Arc<str>>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl Identity {
    pub fn admin() -> Self {
        let groups = vec![GROUP_MASTERS.into(), GROUP_AUTHENTICATED.into()];
        Self { user: USER_ADMIN.into(), groups, uid: None, token_id: None, expires_at: None }
    }

    /// The user name and the groups of a service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = vec![
            GROUP_SERVICE_ACCOUNTS.into(),
            format!("{GROUP_SERVICE_ACCOUNTS}:{namespace}").into(),
            GROUP_AUTHENTICATED.into(),
        ];
        let user = role::service_account_user(namespace, name).into();
        Self { user, groups, uid: None, token_id: None, expires_at: None }
    }
}
