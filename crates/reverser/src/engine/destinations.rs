//! Destinations and the branches that they share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_git::Remote;

use super::reader::ClusterReader;
use super::signers::signing_secret;
use super::state::{BranchKey, Engine, Msg, destination_id};
use crate::branch::{BaseFolder, Branch, BranchConfig, BranchStatus, Destination, Ticket, Turns, remove_unused};
use crate::claims::{Desired, DestinationPlan, TypeId};
use crate::config::{self, GitDestination, Id, Problem, Reason, remote_name};
use crate::secrets::{SecretPolicy, Sops};

/// Below the work directory.
const CLONES: &str = "branches";

/// A destination that is in force.
pub(super) struct Active {
    pub branch: BranchKey,
    pub plan: DestinationPlan,
    /// Why it is not as its spec says.
    pub problem: Option<Problem>,
    /// Whether the branch knows it: what it needs was read.
    pub is_on_branch: bool,
    /// Nothing of it has been compared with Git.
    pub is_unseeded: bool,
    /// It was compared while an API did not answer: files of types that we do
    /// not see were left alone, and are looked at when all of them answer.
    pub is_partly_seeded: bool,
    /// The last comparison, on its way to Git.
    pub seeded: Option<Ticket>,
    /// What its branch told of others who changed its files, as far as that
    /// was answered.
    pub disturbed: u64,
    /// Types whose selection changed since.
    pub unseeded_types: BTreeSet<TypeId>,
}

impl Active {
    fn new(plan: &DestinationPlan) -> Self {
        let (remote, name) = (remote_name(&plan.repo_spec.repo_url), plan.spec.branch.clone());
        Self {
            branch: BranchKey { repo: plan.repo.clone(), remote, name },
            plan: plan.clone(),
            problem: None,
            is_on_branch: false,
            is_unseeded: true,
            is_partly_seeded: false,
            seeded: None,
            disturbed: 0,
            unseeded_types: BTreeSet::new(),
        }
    }

    /// Whether everything that it selects was compared, and is in Git.
    pub fn is_mirrored(&self, status: &BranchStatus) -> bool {
        let is_pushed = self.seeded.is_some_and(|ticket| status.acknowledged >= ticket);
        !self.is_unseeded && self.unseeded_types.is_empty() && is_pushed
    }
}

impl Engine {
    /// `before` is the plan that the destinations were told by.
    pub(super) async fn follow_destinations(&mut self, before: &Desired) {
        let desired = self.desired.clone();
        let gone: Vec<_> = self.destinations.keys().filter(|id| !is_same(self, &desired, id)).cloned().collect();
        for id in gone {
            self.forget_destination(&id);
        }
        for (id, plan) in &desired.destinations {
            let Ok(plan) = plan else { continue };
            if !self.destinations.contains_key(id) {
                self.destinations.insert(id.clone(), Active::new(plan));
            }
            self.note_changed_types(id, before);
            self.put_on_branch(id);
        }
        self.stop_unused_branches().await;
    }

    /// What another selection or another watch tells of is compared again.
    fn note_changed_types(&mut self, id: &Id, before: &Desired) {
        let desired = self.desired.clone();
        let Some(active) = self.destinations.get_mut(id) else { return };
        let types: BTreeSet<_> = [before, &desired]
            .into_iter()
            .flat_map(|desired| desired.routes.of_destination(id).map(|(of, _)| of.clone()))
            .collect();
        active.unseeded_types.extend(types.into_iter().filter(|of| before.share(id, of) != desired.share(id, of)));
    }

    /// Starts the branch if it is the first on it.
    fn put_on_branch(&mut self, id: &Id) {
        let Some(active) = self.destinations.get(id) else { return };
        let (key, spec) = (active.branch.clone(), active.plan.spec.clone());
        let remote = match self.repos.get(&key.repo).and_then(|repo| repo.state.as_ref()) {
            Some(Ok(remote)) => Some(remote.clone()),
            _ => None,
        };
        // A branch that runs goes on with what it has.
        if remote.is_none() && !self.branches.contains_key(&key) {
            return;
        }
        let put = match self.destination(id, &spec) {
            // Its key is being read.
            Ok(None) => return,
            Ok(Some(destination)) => self.start_branch(&key, remote).map(|branch| {
                branch.set_destination(&destination_id(id), destination);
            }),
            Err(problem) => Err(problem),
        };
        if let Some(active) = self.destinations.get_mut(id) {
            active.is_on_branch |= put.is_ok();
            active.problem = put.err();
        }
    }

    fn start_branch(&mut self, key: &BranchKey, remote: Option<Remote>) -> Result<Branch, Problem> {
        if let Some(branch) = self.branches.get(key) {
            return Ok(branch.clone());
        }
        let Some(remote) = remote else {
            return Err(Problem::new(Reason::RepoConfigNotReady, "the repository's Secret is being read"));
        };
        let options = &self.parts.options;
        let all = &self.turns_all;
        let turns = self.turns.entry(key.remote.clone());
        let turns = turns.or_insert_with(|| Turns::new(all.clone(), options.workers_per_repo_max)).clone();
        let config = BranchConfig {
            program: options.program.clone(),
            clone_dir: clone_dir(&options.work_dir, key),
            branch: key.name.clone(),
            operator: options.operator.clone(),
            cluster_uid: self.parts.cluster_uid.clone(),
            limits: options.limits,
            turns,
            term: self.parts.term.clone(),
        };
        let reader = Arc::new(ClusterReader { api: self.parts.api.clone() });
        let branch = Branch::start(config, remote, reader, self.parts.git_metrics.clone());
        let (mut status, messages, of) = (branch.status(), self.messages.clone(), key.clone());
        self.tasks.spawn(async move {
            while status.changed().await.is_ok() {
                let _ = messages.send(Msg::Branch(of.clone())).await;
            }
        });
        self.branches.insert(key.clone(), branch.clone());
        Ok(branch)
    }

    /// What somebody else changed is compared with the cluster again.
    pub(super) fn hear_branch(&mut self, key: &BranchKey) {
        let Some(status) = self.branches.get(key).map(Branch::status) else { return };
        let mut is_disturbed = false;
        for (id, active) in self.destinations.iter_mut().filter(|(_, active)| active.branch == *key) {
            let told = status.borrow().destinations.get(&destination_id(id)).map_or(0, |own| own.disturbed);
            if std::mem::replace(&mut active.disturbed, told) < told {
                (active.is_unseeded, is_disturbed) = (true, true);
            }
        }
        if is_disturbed {
            self.seed();
        }
    }

    /// `None` until everything that it needs was read.
    fn destination(&self, id: &Id, spec: &GitDestination) -> Result<Option<Destination>, Problem> {
        let base_folder = BaseFolder::parse(&spec.base_folder)
            .map_err(|error| Problem::new(Reason::InvalidFolder, format!("spec.baseFolder: {error}")))?;
        let secrets = match (&spec.encryption, spec.secrets) {
            (Some(encryption), _) => {
                let sops = Sops::new(&encryption.recipients).map_err(|error| {
                    Problem::new(Reason::EncryptionInvalid, format!("spec.encryption.recipients: {error}"))
                })?;
                SecretPolicy::Encrypt(Arc::new(sops))
            }
            (None, config::SecretPolicy::Plaintext) => SecretPolicy::Plaintext,
            (None, config::SecretPolicy::Skip) => SecretPolicy::Skip,
        };
        let signer = match signing_secret(id, spec) {
            None => None,
            Some(secret) => match self.signers.get(&secret).and_then(|watch| watch.state.clone()) {
                Some(signer) => Some(signer?),
                None => return Ok(None),
            },
        };
        Ok(Some(Destination { base_folder, secrets, signer }))
    }

    fn forget_destination(&mut self, id: &Id) {
        if let Some(active) = self.destinations.remove(id)
            && let Some(branch) = self.branches.get(&active.branch)
        {
            branch.forget(&destination_id(id));
        }
    }

    async fn stop_unused_branches(&mut self) {
        let used: BTreeSet<_> = self.destinations.values().map(|active| active.branch.clone()).collect();
        let unused: Vec<_> = self.branches.keys().filter(|key| !used.contains(key)).cloned().collect();
        for key in &unused {
            if let Some(branch) = self.branches.remove(key) {
                branch.stop().await;
            }
        }
        self.turns.retain(|remote, _| used.iter().any(|key| key.remote == *remote));
        if !unused.is_empty() {
            self.sweep_clones();
        }
    }

    /// The clones of branches that nobody mirrors to any more: by the end of a
    /// destination, or by what happened while nobody worked here.
    pub(super) fn sweep_clones(&self) {
        let work_dir = self.parts.options.work_dir.clone();
        let used = self.destinations.values().map(|active| clone_dir(&work_dir, &active.branch)).collect();
        // On its own: a clone may have many files, and nobody waits for its end.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = remove_unused(&work_dir.join(CLONES), &used) {
                tracing::warn!(%error, "clones that nobody uses cannot be removed; tried again at the next start");
            }
        });
    }
}

/// Whether a running destination is still what it was when it was seeded.
fn is_same(engine: &Engine, desired: &Desired, id: &Id) -> bool {
    let (Some(active), Some(Ok(plan))) = (engine.destinations.get(id), desired.destinations.get(id)) else {
        return false;
    };
    // Another Secret or another list of branches needs no other comparison.
    let matters = |plan: &DestinationPlan| (plan.repo.clone(), plan.repo_spec.repo_url.clone(), plan.spec.clone());
    matters(&active.plan) == matters(plan)
}

fn clone_dir(work_dir: &Path, key: &BranchKey) -> PathBuf {
    work_dir.join(CLONES).join(folder_name(key))
}

/// A name that no other branch has, and that a person recognises.
fn folder_name(BranchKey { repo, remote, name }: &BranchKey) -> String {
    let hash = xxhash_rust::xxh3::xxh3_64(format!("{repo}\0{remote}\0{name}").as_bytes());
    format!("{}.{}.{hash:016x}", repo.namespace, repo.name)
}
