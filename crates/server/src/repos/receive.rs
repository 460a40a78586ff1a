//! A push, from its first byte to its answer.
//!
//! Its objects come into a folder apart. There they are checked: that they are
//! whole, and that what the branch would be is admitted. Then they become a
//! part of the repository, the refs move, and what was admitted is put in
//! force. Whatever fails before the refs move leaves nothing.
//!
//! Invariants: a push ends with its client only until all of it has come; from
//! then on it goes on, so that a ref never moves without being projected. The
//! turn is held from the check to the projection, and whoever holds it waits
//! for no client.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_git::{
    Moved, ObjectId, PushRequest, Received, RefUpdate, Report, Repository, RequestError, RequestReader, Unpacked,
    Unpacking, Verdict,
};
use tidegate_model::terminal::one_line;
use tokio::sync::{Semaphore, mpsc};

use super::answer::{Answer, Outcome};
use super::body::Source;
use super::hosting::{Hosted, Hosting};
use super::limits::HostedLimits;
use super::pack::{CHUNKS_WAITING_MAX, Output, PACK_TIME_MAX};
use super::projector::{Asked, Checked, Judged, Projector, ProjectorError, chain};
use crate::metrics::Metrics;

/// As often as git itself says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Receiver {
    pub hosting: Arc<Hosting>,
    pub projector: Arc<Projector>,
    pub metrics: Arc<Metrics>,
    pub limits: HostedLimits,
    /// Packs are made into fewer for one repository at a time.
    pub tidying: Arc<Semaphore>,
}

/// What a client sends after its request.
enum Incoming {
    Objects(Box<Unpacking>),
    /// It only deletes.
    Nothing,
    Refused(RequestError),
    Failed(ProjectorError),
}

/// A push whose objects are there, apart.
struct Push<'a> {
    hosted: &'a Hosted,
    updates: &'a [RefUpdate],
    received: Option<Received>,
}

impl Receiver {
    /// Holds `place` until the push has ended, however it ended.
    pub fn converse<P: Send + 'static>(self, hosted: Hosted, source: Source, place: P) -> Output {
        let (sender, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
        tokio::spawn(async move {
            let ended = tokio::time::timeout(PACK_TIME_MAX, self.talk(&hosted, source, &sender)).await;
            let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "the push took too long"));
            let ended = ended.unwrap_or_else(late);
            let is_settled = ended.as_ref().is_ok_and(|outcome| outcome.is_settled());
            if let Err(error) = ended {
                tracing::debug!(%error, "a push ended early");
                // The connection breaks: the client must not take it for the end.
                let _ = sender.send(Err(error)).await;
            }
            // The client has all that it waits for.
            drop(sender);
            if !is_settled {
                self.projector.catch_up_or_report(&self.hosting, &hosted.id).await;
            }
            self.tidy(&hosted).await;
            drop(place);
        });
        receiver
    }

    async fn tidy(&self, hosted: &Hosted) {
        let Ok(_tidying) = self.tidying.try_acquire() else { return };
        if hosted.git.is_untidy().unwrap_or(false)
            && let Err(error) = hosted.git.repack().await
        {
            tracing::warn!(repository = %hosted.id, reason = chain(&error), "failed to make many packs into few");
        }
    }

    /// An error is the client's, and nothing has happened.
    async fn talk(
        &self,
        hosted: &Hosted,
        mut source: Source,
        sender: &mpsc::Sender<io::Result<Bytes>>,
    ) -> io::Result<Outcome> {
        let (request, first) = match read_request(&mut source).await? {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Outcome::Refused),
            Err(problem) => {
                source.discard().await?;
                let _ = sender.send(Ok(problem.report())).await;
                return Ok(Outcome::Refused);
            }
        };
        let incoming = self.receive(hosted, &request, first, &mut source).await;
        self.metrics.git_received(source.received);
        let incoming = incoming?;
        let report = Report::new(&request);
        let mut work = Box::pin(self.answer(hosted, &request, incoming));
        let answer = loop {
            match tokio::time::timeout(KEEP_ALIVE, &mut work).await {
                Ok(answer) => break answer,
                // One that is gone, or reads nothing, need not be told.
                Err(_) => drop(sender.try_send(Ok(report.keep_alive()))),
            }
        };
        self.metrics.git_pushed(answer.outcome.name());
        for bytes in told(&report, &request, &answer) {
            if sender.send(Ok(bytes)).await.is_err() {
                tracing::debug!("the pusher is gone before the answer");
            }
        }
        Ok(answer.outcome)
    }

    /// As long as the client sends.
    async fn receive(
        &self,
        hosted: &Hosted,
        request: &PushRequest,
        first: Bytes,
        source: &mut Source,
    ) -> io::Result<Incoming> {
        let unpacking = match request.check() {
            Err(problem) => Err(Incoming::Refused(problem)),
            Ok(()) if !request.brings_objects() => Err(Incoming::Nothing),
            Ok(()) => hosted.git.receive(self.limits.pack_bytes_max).map_err(|error| Incoming::Failed(error.into())),
        };
        let mut unpacking = match unpacking {
            Ok(unpacking) => unpacking,
            Err(incoming) => {
                source.discard().await?;
                return Ok(incoming);
            }
        };
        let mut piece = Some(first);
        while let Some(bytes) = piece {
            if !unpacking.write(&bytes).await {
                source.discard().await?;
                break;
            }
            piece = source.next().await?;
        }
        Ok(Incoming::Objects(Box::new(unpacking)))
    }

    async fn answer(&self, hosted: &Hosted, request: &PushRequest, incoming: Incoming) -> Answer {
        match self.decide(hosted, request, incoming).await {
            Ok(answer) => answer,
            // It names what to do, and the pusher may be the one who can.
            Err(error @ ProjectorError::Unknown { .. }) => Answer::refused(vec![error.to_string()]),
            Err(error) => {
                tracing::error!(repository = %hosted.id, reason = chain(&error), "a push failed");
                Answer::failed()
            }
        }
    }

    async fn decide(
        &self,
        hosted: &Hosted,
        request: &PushRequest,
        incoming: Incoming,
    ) -> Result<Answer, ProjectorError> {
        let received = match incoming {
            Incoming::Nothing => None,
            Incoming::Refused(problem) => return Ok(Answer::refused(vec![problem.to_string()])),
            Incoming::Failed(error) => return Err(error),
            Incoming::Objects(unpacking) => match unpacking.finish().await? {
                Unpacked::Good(received) => Some(received),
                Unpacked::Bad(lines) => return Ok(Answer::not_unpacked(lines)),
            },
        };
        // It may have taken minutes to come.
        let now = self.hosting.find(&hosted.id).await?;
        let Some(hosted) = now.filter(|now| now.uid == hosted.uid) else {
            return Ok(Answer::refused(vec![format!("the Repository {} was deleted meanwhile", hosted.id)]));
        };
        self.take(Push { hosted: &hosted, updates: &request.updates, received }).await
    }

    /// Everything has come.
    async fn take(&self, push: Push<'_>) -> Result<Answer, ProjectorError> {
        let started = Instant::now();
        let checked = self.check(&push).await?;
        self.metrics.git_push_step("check", started.elapsed());
        let checked = match checked {
            None => None,
            Some(Judged::Good(checked)) => Some(*checked),
            Some(Judged::Bad(lines)) => return Ok(Answer::refused(lines)),
            Some(Judged::Overtaken) => return Ok(Answer::stale()),
        };
        // What moves now must come into force.
        if let Err(reason) = self.projector.api.store().health() {
            return Ok(Answer::refused(vec![format!("the store takes no writes: {reason}")]));
        }
        let started = Instant::now();
        let Push { hosted, updates, received } = push;
        if let Some(received) = received {
            received.keep().await?;
        }
        match self.hosting.move_refs(&hosted.git, updates).await? {
            Moved::Done => {}
            Moved::Stale => return Ok(Answer::stale()),
            Moved::Refused(why) => return Ok(Answer::refused(vec![why])),
        }
        self.metrics.git_push_step("move", started.elapsed());
        let Some(checked) = checked else {
            return Ok(Answer::stored(&hosted.branch));
        };
        self.project(hosted, checked).await
    }

    async fn project(&self, hosted: &Hosted, checked: Checked) -> Result<Answer, ProjectorError> {
        let started = Instant::now();
        let outcome = self.projector.finish(hosted, checked).await?;
        self.metrics.git_push_step("project", started.elapsed());
        Ok(Answer::of(outcome))
    }

    /// `None` if it is good and nothing of it is projected.
    async fn check(&self, push: &Push<'_>) -> Result<Option<Judged>, ProjectorError> {
        let branch = format!("refs/heads/{}", push.hosted.branch);
        let update = push.updates.iter().find(|update| update.name == branch);
        let git = push.received.as_ref().map_or_else(|| push.hosted.git.clone(), Received::repository);
        let judge = async {
            match update {
                Some(update) => self.judge(push.hosted, &git, update).await.map(Some),
                None => Ok(None),
            }
        };
        // The first is work of another thread: they run side by side.
        let (broken, judged) = tokio::join!(broken(push), judge);
        let broken = broken?;
        if broken.is_empty() { judged } else { Ok(Some(Judged::Bad(broken))) }
    }

    async fn judge(&self, hosted: &Hosted, git: &Repository, update: &RefUpdate) -> Result<Judged, ProjectorError> {
        // It became one after the push began.
        if let Some(remote) = &hosted.remote {
            return Ok(Judged::Bad(vec![remote.push_refused(&hosted.id)]));
        }
        let RefUpdate { old, new, .. } = update.clone();
        if !hosted.allow_force {
            let keeps_history = match (&old, &new) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(old), Some(new)) => match git.is_ancestor(old, new).await {
                    // Git does not know what the pusher says that it saw.
                    Err(_) if hosted.git.head(&hosted.branch).await?.as_ref() != Some(old) => {
                        return Ok(Judged::Overtaken);
                    }
                    is_ancestor => is_ancestor?,
                },
            };
            if !keeps_history {
                return Ok(Judged::Bad(vec![rewritten(&hosted.branch, new.is_none())]));
            }
        }
        self.projector.check(Asked { hosted, git, old, new }).await
    }
}

/// With what came after it; `None` if nothing is asked for, which is how a
/// client finds out whether it may push at all.
async fn read_request(source: &mut Source) -> io::Result<Result<Option<(PushRequest, Bytes)>, RequestError>> {
    let mut reader = RequestReader::default();
    while let Some(bytes) = source.next().await? {
        match reader.feed(&bytes) {
            Ok(None) => {}
            Ok(Some((request, _))) if request.updates.is_empty() => return Ok(Ok(None)),
            read => return Ok(read),
        }
    }
    Ok(Err(RequestError::Unfinished))
}

/// Frames for the client.
fn told(report: &Report<'_>, request: &PushRequest, answer: &Answer) -> [Bytes; 2] {
    let lines: Vec<_> = answer.lines.iter().map(|line| one_line(line)).collect();
    let verdict = match (&answer.verdict, lines.first()) {
        // There is no other place to say it.
        (Verdict::Refused(_), Some(first)) if !request.has_side_band => &Verdict::Refused(first.to_string()),
        (verdict, _) => verdict,
    };
    [report.messages(lines.iter().map(|line| &**line)), report.verdict(verdict)]
}

/// Of all refs that are pushed, projected or not: what is here can be cloned.
async fn broken(push: &Push<'_>) -> Result<Vec<String>, ProjectorError> {
    let Some(received) = &push.received else { return Ok(Vec::new()) };
    let tip = |update: &RefUpdate| -> Option<(String, ObjectId)> { Some((update.name.clone(), update.new.clone()?)) };
    Ok(received.broken(push.updates.iter().filter_map(tip).collect()).await?)
}

fn rewritten(branch: &str, is_deleted: bool) -> String {
    let what = if is_deleted { "would be deleted" } else { "would lose commits" };
    format!(
        "{branch} is projected and {what}: push a commit that undoes the change, or set spec.allowForce on the Repository"
    )
}
