//! Comparing whole destinations, or types of one, with Git.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::list::List;
use super::state::{Engine, destination_id};
use crate::branch::{Branch, Scope, Ticket};
use crate::change::Listed;
use crate::claims::{ClaimId, TypeId};
use crate::config::Id;

impl Engine {
    /// Seeds what has all its lists, and asks for those that are missing.
    pub(super) fn seed(&mut self) {
        if self.is_sure() {
            for active in self.destinations.values_mut() {
                active.is_unseeded |= std::mem::take(&mut active.is_partly_seeded);
            }
        }
        let ids: Vec<_> = self.destinations.keys().cloned().collect();
        for id in ids {
            self.seed_destination(&id);
        }
        self.drop_lists(self.claims.keys().cloned().collect());
    }

    /// The same after one new list: only for those who may have waited for it.
    pub(super) fn seed_listed(&mut self, claim: &ClaimId) {
        let ids = self.told_by(claim);
        ids.iter().for_each(|id| self.seed_destination(id));
        let claims = ids.iter().flat_map(|id| self.desired.claims_of(id)).chain([claim.clone()]).collect();
        self.drop_lists(claims);
    }

    fn told_by(&self, claim: &ClaimId) -> Vec<Id> {
        self.desired.routes.told_by(&claim.of, claim.namespace.as_deref()).cloned().collect()
    }

    fn seed_destination(&mut self, id: &Id) {
        let Some(active) = self.destinations.get(id) else { return };
        let (is_whole, types) = (active.is_unseeded, active.unseeded_types.clone());
        if !active.is_on_branch || active.problem.is_some() || (!is_whole && types.is_empty()) {
            return;
        }
        let Some(branch) = self.branches.get(&active.branch).cloned() else { return };
        if is_whole {
            return self.seed_whole(id, &branch);
        }
        for of in types {
            let claims = self.desired.claims_of_type(id, &of);
            if self.has_lists(&claims) {
                let ticket = self.seed_type(id, &branch, &of);
                if let Some(active) = self.destinations.get_mut(id) {
                    active.seeded = active.seeded.max(Some(ticket));
                    active.unseeded_types.remove(&of);
                }
            }
        }
    }

    /// Only after a complete list of every claim. A destination that no rule
    /// names is left as it is: it may be waiting for its first rule.
    fn seed_whole(&mut self, id: &Id, branch: &Branch) {
        let has_rule = self.desired.rules.values().any(|verdict| verdict.destination.as_ref() == Some(id));
        let claims = self.desired.claims_of(id);
        if !has_rule || !self.has_lists(&claims) {
            return;
        }
        tracing::info!(destination = %id, claims = claims.len(), "comparing with Git");
        let types: BTreeSet<_> = claims.iter().map(|claim| claim.of.clone()).collect();
        let is_sure = self.is_sure();
        let ticket = if is_sure && types.iter().all(|of| self.wants_everything(id, of)) {
            let objects = types.iter().flat_map(|of| self.objects(id, of));
            Some(branch.seed(&destination_id(id), Scope::Whole, objects))
        } else {
            types.iter().map(|of| self.seed_type(id, branch, of)).max()
        };
        if let Some(active) = self.destinations.get_mut(id) {
            active.seeded = ticket.or(Some(Ticket::default()));
            active.is_unseeded = false;
            active.is_partly_seeded = !is_sure;
            active.unseeded_types.clear();
        }
    }

    /// Where an API did not answer, files of types that we do not see may be
    /// its own.
    fn is_sure(&self) -> bool {
        self.discovered.as_ref().is_some_and(|discovered| discovered.failed.is_empty())
    }

    fn seed_type(&self, id: &Id, branch: &Branch, of: &TypeId) -> Ticket {
        let [group, version, resource] = [&of.group, &of.version, &of.resource].map(|name| name.as_str().into());
        let scope = if self.wants_everything(id, of) {
            Scope::Type { group, version, resource, namespace: None }
        } else {
            // A rule that leaves out an operation deletes nothing by a list.
            Scope::Listed { group, version, resource }
        };
        branch.seed(&destination_id(id), scope, self.objects(id, of))
    }

    /// Whether every selection of the type has all operations; so has none at all.
    fn wants_everything(&self, id: &Id, of: &TypeId) -> bool {
        let mut selections = self.desired.routes.of_destination(id).filter(|(own, _)| *own == of);
        selections.all(|(_, selection)| selection.operations == crate::claims::Operations::ALL)
    }

    /// What the lists have of a type for this destination.
    fn objects<'e>(&'e self, id: &'e Id, of: &'e TypeId) -> impl Iterator<Item = Listed> + 'e {
        let lists = self.desired.claims_of_type(id, of).into_iter();
        let lists = lists.filter_map(|claim| self.claims.get(&claim)?.list.as_ref());
        let is_wanted = |namespace: Option<&Arc<str>>| {
            let operations = self.desired.routes.operations(id, of, namespace.map(AsRef::as_ref));
            operations.is_some_and(|operations| operations.create && operations.update)
        };
        lists.flat_map(List::objects).filter(move |listed| is_wanted(listed.key.namespace.as_ref()))
    }

    /// Asks for what is missing.
    fn has_lists(&mut self, claims: &BTreeSet<ClaimId>) -> bool {
        let mut has_all = true;
        for claim in claims {
            match self.claims.get_mut(claim) {
                Some(watched) if watched.list.is_some() => {}
                Some(watched) => {
                    watched.want_list();
                    has_all = false;
                }
                None => has_all = false,
            }
        }
        has_all
    }

    /// Lists are kept only as long as somebody waits for another one.
    fn drop_lists(&mut self, claims: BTreeSet<ClaimId>) {
        for claim in claims {
            let is_waiting = |id: &Id| {
                let active = self.destinations.get(id);
                active.is_some_and(|active| active.is_unseeded || active.unseeded_types.contains(&claim.of))
            };
            let has_list = self.claims.get(&claim).is_some_and(|watched| watched.list.is_some());
            if has_list && !self.told_by(&claim).iter().any(is_waiting) {
                drop(self.claims.get_mut(&claim).and_then(|watched| watched.list.take()));
            }
        }
    }
}
