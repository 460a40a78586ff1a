//! Service accounts, as far as a token depends on them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use tidegate_model::{Object, ObjectKey};

/// Where tokens look up the account that they speak for.
pub trait Accounts {
    fn account(&self, namespace: &str, name: &str) -> Option<AccountState>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountState {
    pub uid: Arc<str>,
    /// `status.revokedTokens[].id`.
    pub revoked: Arc<BTreeSet<Box<str>>>,
}

impl AccountState {
    /// `None` if no token may speak for it: it is being deleted, or the store
    /// has not given it a uid.
    fn read(account: &Object) -> Option<Self> {
        if account.deletion_timestamp().is_some() {
            return None;
        }
        let entries = account.status().and_then(|status| status.get("revokedTokens")).and_then(Value::as_array);
        let ids = entries.into_iter().flatten().filter_map(|entry| entry.get("id")?.as_str());
        Some(Self { uid: account.uid()?.into(), revoked: Arc::new(ids.map(Into::into).collect()) })
    }
}

/// The accounts of a store by namespace; a clone shares what does not change.
#[derive(Clone, Default, Debug)]
pub struct AccountIndex(HashMap<Arc<str>, Arc<HashMap<Arc<str>, AccountState>>>);

impl AccountIndex {
    /// Takes over the new state of one object, `None` if it is gone; objects
    /// of other kinds are passed over. Says whether any token is concerned.
    pub fn apply(&mut self, key: &ObjectKey, object: Option<&Object>) -> bool {
        let (true, Some(namespace)) = (is_account(key), &key.namespace) else { return false };
        let state = object.and_then(AccountState::read);
        if self.get(namespace, &key.name) == state.as_ref() {
            return false;
        }
        let accounts = Arc::make_mut(self.0.entry(namespace.clone()).or_default());
        match state {
            Some(state) => accounts.insert(key.name.clone(), state),
            None => accounts.remove(&key.name),
        };
        if accounts.is_empty() {
            self.0.remove(namespace);
        }
        true
    }

    fn get(&self, namespace: &str, name: &str) -> Option<&AccountState> {
        self.0.get(namespace)?.get(name)
    }
}

impl Accounts for AccountIndex {
    fn account(&self, namespace: &str, name: &str) -> Option<AccountState> {
        self.get(namespace, name).cloned()
    }
}

pub(super) fn is_account(key: &ObjectKey) -> bool {
    key.resource.group.is_empty() && &*key.resource.plural == "serviceaccounts"
}
