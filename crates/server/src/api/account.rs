//! Tokens of service accounts: made and revoked through the API.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tidegate_model::{GroupResource, ObjectKey};

use super::error::{ApiError, Code};
use super::status::{decode, not_found};
use super::{Api, StatusWrite};
use crate::identity::{
    Attributes, AuthError, IssueError, IssuedToken, SUBRESOURCE_TOKEN, Session, TOKEN_TTL_DEFAULT, TOKEN_TTL_MAX, Verb,
};

/// Two revocations at once conflict; one of them reads again.
const REVOKE_ATTEMPTS_MAX: usize = 8;

impl Api {
    pub fn create_token(
        &self,
        session: &Session,
        namespace: &str,
        account: &str,
        ttl: Option<Duration>,
    ) -> Result<IssuedToken, ApiError> {
        self.authorize(session, &token_attributes(Verb::Create, namespace, account))?;
        Ok(self.0.identities.issue(namespace, account, ttl.unwrap_or(TOKEN_TTL_DEFAULT))?)
    }

    /// Recorded in the account's status, so that it is durable and every
    /// server learns of it by the watch.
    pub async fn revoke_token(
        &self,
        session: &Session,
        namespace: &str,
        account: &str,
        token_id: &str,
    ) -> Result<(), ApiError> {
        self.authorize(session, &token_attributes(Verb::Delete, namespace, account))?;
        if uuid::Uuid::try_parse(token_id).is_err() {
            let message =
                "`tokenId` is not the id of a token: `createToken` returned it, and `whoami` shows it as `tokenId`";
            return Err(ApiError::bad_request(message));
        }
        let mut outcome = Ok(());
        for _ in 0..REVOKE_ATTEMPTS_MAX {
            outcome = self.try_revoke(namespace, account, token_id).await;
            match &outcome {
                Err(error) if error.code == Code::Conflict => {}
                _ => break,
            }
        }
        outcome
    }

    async fn try_revoke(&self, namespace: &str, account: &str, token_id: &str) -> Result<(), ApiError> {
        let key = account_key(namespace, account);
        let stored = self.0.store.view().get(&key)?.ok_or_else(|| not_found(&key))?;
        let kind = self.kind("v1", "ServiceAccount")?;
        let patch = json!({"revokedTokens": revoked_with(&decode(&stored)?, token_id, Utc::now())});
        let write = StatusWrite {
            namespace: Some(namespace.into()),
            name: account.into(),
            resource_version: Some(stored.version.to_string()),
            patch,
        };
        // The permission for this was decided above.
        let item = self.write_status(&kind, &key, write).await?;
        self.0.follower.reached(&key, item.version).await;
        Ok(())
    }
}

fn account_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("", "serviceaccounts"), Some(namespace), name)
}

fn token_attributes(verb: Verb, namespace: &str, account: &str) -> Attributes {
    Attributes::new(verb, &GroupResource::new("", "serviceaccounts"))
        .subresource(SUBRESOURCE_TOKEN)
        .namespace(Some(namespace))
        .name(account)
}

/// The list with one more, and without those that have expired by themselves.
fn revoked_with(account: &tidegate_model::Object, token_id: &str, now: DateTime<Utc>) -> Vec<Value> {
    let entries = account.status().and_then(|status| status.get("revokedTokens")).and_then(Value::as_array);
    let is_live = |entry: &&Value| {
        let expires =
            entry.get("expiresAt").and_then(Value::as_str).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
        expires.is_none_or(|at| at > now) && entry.get("id").and_then(Value::as_str) != Some(token_id)
    };
    // A token lives at most this long, so the entry is needed no longer.
    let expires = (now + TOKEN_TTL_MAX).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    entries
        .into_iter()
        .flatten()
        .filter(is_live)
        .cloned()
        .chain([json!({"id": token_id, "expiresAt": expires})])
        .collect()
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        let code = if matches!(error, AuthError::Forbidden { .. }) { Code::Forbidden } else { Code::Unauthenticated };
        Self::new(code, error.to_string())
    }
}

impl From<IssueError> for ApiError {
    fn from(error: IssueError) -> Self {
        let code = match &error {
            IssueError::Lifetime { .. } => Code::BadRequest,
            IssueError::NoAccount { .. } => Code::NotFound,
            IssueError::Signing { .. } => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}
