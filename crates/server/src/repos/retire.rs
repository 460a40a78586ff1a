//! A deleted repository is put away: what it defined goes, then its directory,
//! then the sign that it has to.
//!
//! Invariants: until the last step no repository of the same name can be
//! reached, so nothing of a new one is taken for the old one's. A crash between
//! two steps is mended by doing them all again.

use tidegate_model::{GroupResource, ObjectKey};
use tidegate_store::Transaction;

use super::change::Work;
use super::hosting::{Hosted, Hosting};
use super::id::RepositoryId;
use super::projector::{CaughtUp, Projector, ProjectorError, chain};
use crate::api::{Owned, ProjectError, Tombstone, Turn};

/// Removed in one commit: ~5 KiB each in memory make 250 MiB.
const OBJECTS_AT_ONCE_MAX: usize = 50_000;

impl Projector {
    /// Nothing to do, if no repository of this name was deleted or its object
    /// still waits for finalizers.
    pub async fn retire(&self, hosting: &Hosting, id: &RepositoryId) -> Result<(), ProjectorError> {
        if !hosting.is_deleted(id)? {
            return Ok(());
        }
        let former = hosting.former(id);
        // Nothing is added to it any more: that needs its object.
        let owned = match self.before(id)?.mark {
            Some(_) => tokio::task::block_in_place(|| self.api.owned_by(&former.rules.repository))?,
            None => Owned::new(),
        };
        let turn = self.api.turn().await;
        if !hosting.is_deleted(id)? {
            return Ok(());
        }
        self.clear(&turn, &former, owned).await?;
        hosting.put_away(id)?;
        let marks = vec![(Tombstone::name(id), None)];
        let cleared = self.api.store().commit(Transaction { writes: Vec::new(), marks }).await;
        cleared.map_err(ProjectError::Commit)?;
        tracing::info!(repository = %id, "the deleted repository is put away");
        Ok(())
    }

    /// For when nobody waits for it: it is tried again.
    pub async fn retire_or_log(&self, hosting: &Hosting, id: &RepositoryId) {
        if let Err(error) = self.retire(hosting, id).await {
            tracing::warn!(repository = %id, reason = chain(&error), "a deleted repository cannot be put away yet");
        }
    }

    /// The mark goes with the last objects: until then the rest is looked for.
    async fn clear(&self, turn: &Turn, former: &Hosted, owned: Owned) -> Result<(), ProjectorError> {
        let mut batches = batches(owned).into_iter().peekable();
        while let Some(batch) = batches.next() {
            let mut before = self.before(&former.id)?;
            before.mark = before.mark.filter(|_| batches.peek().is_some());
            let work = Work::removing(batch, before);
            if let CaughtUp::Refused(lines) = self.apply(turn, former, &work, None).await? {
                let reason = lines.into_iter().next().unwrap_or_default();
                return Err(ProjectorError::Retire { id: former.id.clone(), reason });
            }
        }
        Ok(())
    }
}

/// In the order in which they can go: kinds and namespaces when what is of
/// them is gone, or at least asked to go by a stamp. There is always a last.
fn batches(owned: Owned) -> Vec<Owned> {
    let all = owned.into_iter().flat_map(|(path, keys)| keys.into_iter().map(move |key| (path.clone(), key)));
    let (last, first): (Vec<_>, Vec<_>) = all.partition(|(_, key)| holds_others(key));
    let chunks = first.chunks(OBJECTS_AT_ONCE_MAX).map(by_path);
    chunks.chain([by_path(&last)]).collect()
}

fn by_path(objects: &[(String, ObjectKey)]) -> Owned {
    let mut owned = Owned::new();
    for (path, key) in objects {
        owned.entry(path.clone()).or_default().push(key.clone());
    }
    owned
}

fn holds_others(key: &ObjectKey) -> bool {
    let holders = [("apiextensions.k8s.io", "customresourcedefinitions"), ("", "namespaces")];
    holders.iter().any(|(group, plural)| key.resource == GroupResource::new(group, plural))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_namespaces_go_last() {
        let key = |group: &str, plural: &str, name: &str| ObjectKey::new(GroupResource::new(group, plural), None, name);
        let kind = key("apiextensions.k8s.io", "customresourcedefinitions", "a.b");
        let (space, object) = (key("", "namespaces", "n"), key("b", "a", "x"));
        let file = |keys: &[&ObjectKey]| Owned::from([("f".into(), keys.iter().copied().cloned().collect())]);
        assert_eq!(batches(file(&[&kind, &object, &space])), [file(&[&object]), file(&[&kind, &space])]);
        assert_eq!(batches(file(&[&object])), [file(&[&object]), Owned::new()]);
        assert_eq!(batches(Owned::new()), [Owned::new()]);
    }
}
