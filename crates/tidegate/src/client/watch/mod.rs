//! A watch that outlives its connections.
//!
//! `follower` decides, as a pure state machine, where to start and what to
//! show; the client's `Socket` speaks `graphql-transport-ws`; this file joins them.
//!
//! Invariant: the cursor moves only with an event that was handed on, so a lost
//! connection repeats nothing and skips nothing.

mod backoff;
mod follower;

use anyhow::{Result, anyhow};
use serde_json::{Map, Value};
use tidegate_client::{Client, End, Event, Refusal, Socket};

pub use follower::From;

use super::kinds::KindInfo;
use super::list;
use super::list::Selection;
use backoff::Backoff;
use follower::{Follower, Next, Start};

/// What the caller says to an event.
pub enum Flow {
    Continue,
    Stop,
}

/// Until `sink` stops it, or until it cannot go on. Cancel it by dropping it.
pub async fn run(
    client: &Client,
    selection: &Selection,
    from: From,
    mut sink: impl FnMut(Event) -> Result<Flow>,
) -> Result<()> {
    let from = match from {
        // From a version on, a connection that breaks at once leaves no gap.
        From::Now => From::Reached(list::version(client, selection).await?),
        from => from,
    };
    let mut follower = Follower::new(from);
    let mut backoff = Backoff::default();
    loop {
        let end = connection(client, selection, &mut follower, &mut backoff, &mut sink).await?;
        let reason = match end {
            None => return Ok(()),
            Some(End::Refused(refusal)) => match follower.refused(&refusal) {
                Next::Stop => return Err(stopped(&follower, refusal, &selection.kind)),
                Next::Relist => {
                    tell!("the events since {} are gone: reading the list again", follower.cursor());
                    continue;
                }
                Next::Resume => refusal.message,
            },
            Some(End::Lost(reason)) => reason,
        };
        let delay = backoff.next(rand::random());
        tell!("connection lost ({reason}): resuming from {} in {:.1} s", follower.cursor(), delay.as_secs_f32());
        tokio::time::sleep(delay).await;
    }
}

/// One connection; `None` if the caller had enough.
async fn connection(
    client: &Client,
    selection: &Selection,
    follower: &mut Follower,
    backoff: &mut Backoff,
    sink: &mut impl FnMut(Event) -> Result<Flow>,
) -> Result<Option<End>> {
    let mut socket = match Socket::open(client, variables(selection, follower.start())).await? {
        Ok(socket) => socket,
        Err(end) => return Ok(Some(end)),
    };
    loop {
        match socket.next().await {
            Err(end) => return Ok(Some(end)),
            Ok(event) => {
                backoff.reset();
                for shown in follower.accept(event) {
                    if matches!(sink(shown)?, Flow::Stop) {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

fn variables(selection: &Selection, start: Start) -> Map<String, Value> {
    let mut variables = selection.variables();
    match start {
        Start::Initial => variables.insert("sendInitialEvents".into(), true.into()),
        Start::After(version) => variables.insert("resourceVersion".into(), version.into()),
    };
    variables
}

fn stopped(follower: &Follower, refusal: Refusal, kind: &KindInfo) -> anyhow::Error {
    if follower.has_forgotten() {
        return anyhow!(
            "the events since {} are gone, and there are too many objects to tell what was deleted meanwhile\n  next: list them again with `tidegate get {}`",
            follower.cursor(),
            kind.resource()
        );
    }
    refusal.into()
}
