//! The engine's state and its loop.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Interval, sleep_until, timeout};

use super::claims::Watched;
use super::configs::{ConfigTold, watch_config};
use super::destinations::Active;
use super::discover::keep_discovering;
use super::repos::RepoTold;
use super::signers::{SignerState, SignerWatch};
use super::writer::{StatusWriter, write_statuses};
use super::{Parts, repos};
use crate::attribution::{Attributed, Limits, Operation, Waiting};
use crate::branch::{Branch, DestinationId, Turns};
use crate::change::{Author, Change};
use crate::claims::{ClaimId, Desired, GroupVersion, plan};
use crate::cluster::{Cue, Discovered};
use crate::config::{ConfigKind, ConfigSet, Id, Meta, id_of};
use crate::ingest::{Seen, Told};

/// Between the claims and the engine: a full channel holds up the watches,
/// which hold up the API server's buffers, and nothing is lost.
const CLAIM_MESSAGES_MAX: usize = 1_024;
const MESSAGES_MAX: usize = 256;
/// A push takes a second or two; Kubernetes allows 30 s before it kills.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(15);
/// Statuses are written at most this often.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// A branch of a repository object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BranchKey {
    pub repo: Id,
    /// Which repository that is: another address is another branch.
    pub remote: String,
    pub name: String,
}

pub(super) enum Msg {
    Config(ConfigKind, ConfigTold),
    Discovered(Discovered),
    /// These APIs answer, and did not before.
    Answers(Vec<GroupVersion>),
    Repo(Id, RepoTold),
    /// A Secret with a key to sign with.
    Signer(Id, SignerState),
    /// A branch has something new to tell.
    Branch(BranchKey),
}

pub(super) struct Engine {
    pub parts: Parts,
    pub messages: mpsc::Sender<Msg>,
    pub claim_messages: mpsc::Sender<(ClaimId, u64, Told)>,
    pub config: ConfigSet,
    pub config_cues: [(ConfigKind, Cue); ConfigKind::ALL.len()],
    /// Kinds whose list is complete.
    pub configured: BTreeSet<ConfigKind>,
    pub discovered: Option<Discovered>,
    pub desired: Arc<Desired>,
    pub claims: BTreeMap<ClaimId, Watched>,
    pub claim_runs: u64,
    pub repos: BTreeMap<Id, repos::Repo>,
    pub branches: BTreeMap<BranchKey, Branch>,
    /// Of all branches, and of those of each repository, by what
    /// [`BranchKey::remote`] calls it: several objects may name one.
    pub turns_all: Arc<Semaphore>,
    pub turns: BTreeMap<String, Turns>,
    pub signers: BTreeMap<Id, SignerWatch>,
    pub destinations: BTreeMap<Id, Active>,
    pub waiting: Waiting<Seen>,
    pub evictions_told: u64,
    pub writer: StatusWriter,
    pub is_report_due: bool,
    /// Whether there has been a plan.
    pub is_planned: bool,
    pub tasks: JoinSet<()>,
}

/// How to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// What waits is pushed first, for as long as [`DRAIN_TIME_MAX`].
    Drain,
    /// Another replica is about to start.
    AtOnce,
}

/// Runs until it is told to end. When it returns, nothing reaches a remote
/// from here any more.
pub async fn run(parts: Parts, ending: oneshot::Receiver<Ending>) {
    let (messages, inbox) = mpsc::channel(MESSAGES_MAX);
    let (claim_messages, claim_inbox) = mpsc::channel(CLAIM_MESSAGES_MAX);
    let mut engine = Engine::new(parts, messages, claim_messages);
    let mut inputs = Inputs { inbox, claim_inbox, reports: tokio::time::interval(REPORT_INTERVAL) };
    let mut reported = Instant::now();
    let mut ending = pin!(ending);
    loop {
        // In the middle of a step, too: one may wait for an API server that
        // does not answer, and the time to stop is short.
        tokio::select! {
            biased;
            ending = &mut ending => return engine.end(ending.unwrap_or(Ending::AtOnce)).await,
            () = engine.step(&mut inputs) => {}
        }
        if engine.is_report_due && reported.elapsed() >= REPORT_INTERVAL {
            engine.report();
            reported = Instant::now();
        }
    }
}

/// What the engine waits for.
struct Inputs {
    inbox: mpsc::Receiver<Msg>,
    claim_inbox: mpsc::Receiver<(ClaimId, u64, Told)>,
    reports: Interval,
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        sleep_until(deadline.into()).await;
    }
}

impl Engine {
    fn new(parts: Parts, messages: mpsc::Sender<Msg>, claim_messages: mpsc::Sender<(ClaimId, u64, Told)>) -> Self {
        let mut tasks = JoinSet::new();
        let config_cues = ConfigKind::ALL.map(|kind| (kind, Cue::default()));
        for (kind, cue) in &config_cues {
            tasks.spawn(watch_config(parts.api.clone(), *kind, cue.clone(), messages.clone()));
        }
        tasks.spawn(keep_discovering(parts.api.clone(), parts.options.discovery_refresh, messages.clone()));
        let (writer, writing) = write_statuses(parts.api.clone(), parts.options.operator.instance_id.clone());
        tasks.spawn(writing);
        let waiting = Waiting::new(Limits::default(), parts.options.grace);
        let (config, configured, discovered, desired, claims) = Default::default();
        let (repos, branches, turns, signers, destinations) = Default::default();
        let turns_all = Arc::new(Semaphore::new(parts.options.workers_max));
        Self {
            parts,
            messages,
            claim_messages,
            config,
            config_cues,
            configured,
            discovered,
            desired,
            claims,
            claim_runs: 0,
            repos,
            branches,
            turns_all,
            turns,
            signers,
            destinations,
            waiting,
            evictions_told: 0,
            writer,
            is_report_due: false,
            is_planned: false,
            tasks,
        }
    }

    async fn step(&mut self, inputs: &mut Inputs) {
        let (deadline, shared) = (self.waiting.deadline(), self.parts.shared.clone());
        tokio::select! {
            biased;
            () = shared.woken.notified() => {}
            Some(message) = inputs.inbox.recv() => self.hear(message).await,
            Some((id, run, told)) = inputs.claim_inbox.recv() => self.hear_claim(&id, run, told),
            () = until(deadline), if deadline.is_some() => {}
            _ = inputs.reports.tick() => self.is_report_due |= shared.proof.take_news(),
        }
        self.attribute();
    }

    async fn end(&mut self, ending: Ending) {
        if ending == Ending::Drain {
            let released = self.waiting.tick(Instant::now() + self.parts.options.grace);
            self.release(released);
            // All at once: a remote that is away holds up its own branches alone.
            let flushed: Vec<_> = self.branches.values().map(|branch| (branch, branch.flush())).collect();
            let drained = async {
                for (branch, ticket) in flushed {
                    branch.acknowledged(ticket).await;
                }
            };
            if timeout(DRAIN_TIME_MAX, drained).await.is_err() {
                tracing::warn!("not everything was pushed; the next start compares with Git");
            }
        }
        self.tasks.abort_all();
        for branch in self.branches.values() {
            branch.stop().await;
        }
    }

    async fn hear(&mut self, message: Msg) {
        match message {
            Msg::Config(kind, told) => {
                // A status that we wrote ourselves changes no plan.
                if self.take_config(kind, told) {
                    self.replan().await;
                }
            }
            Msg::Discovered(discovered) => {
                if self.take_discovery(discovered) {
                    self.replan().await;
                }
            }
            Msg::Answers(of) => self.hear_answers(&of),
            Msg::Repo(id, told) => self.hear_repo(&id, told).await,
            Msg::Signer(secret, state) => self.hear_signer(&secret, state).await,
            Msg::Branch(key) => self.hear_branch(&key),
        }
        self.is_report_due = true;
    }

    /// Says whether there is something new to plan by.
    fn take_config(&mut self, kind: ConfigKind, told: ConfigTold) -> bool {
        match told {
            ConfigTold::All(objects) => {
                let before = self.config.clone();
                let known = self.config.ids(kind);
                known.iter().for_each(|id| self.config.remove(kind, id));
                objects.iter().for_each(|object| self.config.put(kind, object));
                self.configured.insert(kind) || !self.config.has_same_specs(&before)
            }
            ConfigTold::Put(object) => {
                let before = self.config.meta(kind, &id_of(&object)).map(Meta::incarnation);
                self.config.put(kind, &object);
                before != self.config.meta(kind, &id_of(&object)).map(Meta::incarnation)
            }
            ConfigTold::Gone(id) => {
                self.config.remove(kind, &id);
                true
            }
        }
    }

    fn take_discovery(&mut self, mut discovered: Discovered) -> bool {
        discovered.catalog = discovered.catalog.without(&self.parts.options.exclusions);
        let is_new = self.discovered.as_ref() != Some(&discovered);
        let before = self.discovered.replace(discovered);
        self.note_answers(before.as_ref());
        is_new
    }

    async fn replan(&mut self) {
        let Some(discovered) = self.discovered.as_ref().filter(|_| self.configured.len() == ConfigKind::ALL.len())
        else {
            return;
        };
        let desired = Arc::new(plan(&self.config, &discovered.catalog, self.parts.options.plan));
        let before = std::mem::replace(&mut self.desired, desired.clone());
        self.parts.shared.plan(desired);
        self.follow_repos();
        self.follow_signers();
        self.follow_destinations(&before).await;
        if !std::mem::replace(&mut self.is_planned, true) {
            self.sweep_clones();
        }
        self.follow_claims();
        self.seed();
        self.parts.shared.replanned.notify_one();
        self.is_report_due = true;
    }

    fn hear_claim(&mut self, id: &ClaimId, run: u64, told: Told) {
        // A watch that was stopped and started again speaks for itself alone.
        let Some(watched) = self.claims.get_mut(id).filter(|watched| watched.run == run) else { return };
        match told {
            Told::Listed(list) => {
                watched.error = None;
                watched.listed(list);
                self.seed_listed(id);
                self.is_report_due = true;
            }
            Told::Changed(seen) => {
                watched.note(&seen);
                // Records that came before the event are looked at before it.
                self.admit();
                let now = Instant::now();
                let released = self.waiting.observed(seen.observed.clone(), *seen, now);
                self.release(released);
            }
            Told::Failed(error) => {
                self.parts.shared.metrics.watch_failures.inc();
                watched.error = Some(error);
                self.is_report_due = true;
            }
            Told::Recovered => self.is_report_due |= watched.error.take().is_some(),
        }
    }

    fn attribute(&mut self) {
        self.admit();
        let released = self.waiting.tick(Instant::now());
        self.release(released);
    }

    fn admit(&mut self) {
        for attempt in self.parts.shared.take_inbox() {
            let released = self.waiting.admitted(attempt, Instant::now());
            self.release(released);
        }
        let evictions = self.waiting.correlator().evictions();
        self.parts.shared.metrics.evictions.inc_by(evictions - self.evictions_told);
        self.evictions_told = evictions;
    }

    /// To every destination that wants this operation of this object.
    fn release(&mut self, released: Vec<Attributed<Seen>>) {
        for Attributed { change: seen, by } in released {
            let metrics = &self.parts.shared.metrics;
            if by.is_some() {
                metrics.hits.inc()
            } else {
                metrics.misses.inc()
            };
            let author = by.map_or(Author::Unknown, |by| Author::User { name: by.name, email: by.email });
            let of = super::claims::type_of(&seen.key);
            for route in self.desired.routes.of(&of, seen.key.namespace.as_deref()) {
                let is_wanted = match seen.observed.operation {
                    Operation::Create => route.operations.create,
                    Operation::Update => route.operations.update,
                    Operation::Delete => route.operations.delete,
                };
                let branch =
                    self.destinations.get(route.destination).and_then(|active| self.branches.get(&active.branch));
                // Without a branch the destination is seeded when it has one.
                let Some(branch) = branch.filter(|_| is_wanted) else { continue };
                tracing::debug!(object = %seen.key, destination = %route.destination, author = ?author, "changed");
                let (key, what, seen_at) = (seen.key.clone(), seen.what.clone(), seen.seen_at);
                branch
                    .submit(&destination_id(route.destination), Change { key, what, author: author.clone(), seen_at });
            }
        }
    }
}

pub(super) fn destination_id(id: &Id) -> DestinationId {
    DestinationId(id.to_string().into())
}
