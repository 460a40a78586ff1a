//! What a reconciler remembers of its keys from one life of the manager to the
//! next: one small row a key, among the controller's own and gone with them.
//!
//! A note is durable when it returns, and written under the lease. The runtime
//! does not read it.

use bytes::Bytes;
use tidegate_model::ObjectKey;

use crate::rows::{self, NOTE};
use crate::{ApiError, Client, Kind, StateChange};

impl Client {
    /// All notes of a controller about objects of `kind`.
    pub async fn notes(&self, controller: &str, kind: &Kind) -> Result<Vec<(ObjectKey, Bytes)>, ApiError> {
        let mut notes = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let rows = self.plane().state_read(controller, NOTE, after.as_deref()).await?;
            let Some(last) = rows.last() else { return Ok(notes) };
            after = Some(last.name.clone());
            notes.extend(rows.into_iter().filter_map(|row| {
                let key = rows::parse_key(kind, row.name.strip_prefix(NOTE)?)?;
                Some((key, row.value))
            }));
        }
    }

    /// The note about one key.
    pub async fn note(&self, controller: &str, key: &ObjectKey) -> Result<Option<Bytes>, ApiError> {
        let name = format!("{NOTE}{}", rows::key_text(key));
        let rows = self.plane().state_read(controller, &name, None).await?;
        // Others may begin with the same letters.
        Ok(rows.into_iter().find(|row| row.name == name).map(|row| row.value))
    }

    /// `None` removes it.
    pub async fn set_note(&self, controller: &str, key: &ObjectKey, value: Option<Bytes>) -> Result<(), ApiError> {
        let change = StateChange { name: format!("{NOTE}{}", rows::key_text(key)), value };
        self.plane().state_write(controller, self.fence()?.as_ref(), vec![change]).await
    }
}
