//! The accept loop and the drain.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connection::{self, Shared};
use super::error::STOPPING;
use super::limits::Limits;
use super::listener::Listener;
use super::refusal::{Refusals, waiting};
use super::shutdown::Shutdown;
use super::stream::Place;
use super::tls::keep_fresh;
use crate::metrics::Metrics;

const FULL: &str = "the server has as many connections as it may: try again in a moment";
/// Out of file descriptors: give connections time to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every connection came to its own end.
    Drained,
    /// Some were still open after the drain time, or at the second signal.
    Cut,
}

/// Serves `router` until `shutdown` drains, and returns when the last
/// connection has ended, when the drain time is over, or when it is told to
/// end at once.
pub async fn serve(
    listener: Listener,
    router: Router,
    limits: Limits,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
) -> Outcome {
    let Listener { socket, tls, .. } = listener;
    let places = Arc::new(Semaphore::new(limits.connections_max as usize));
    let door = Door {
        shared: Shared {
            router,
            limits,
            shutdown: shutdown.clone(),
            tls: tls.as_ref().map(|tls| tls.acceptor.clone()),
        },
        places: places.clone(),
        refusals: Refusals::new(tls.as_ref()),
        metrics,
    };
    if let Some(tls) = tls {
        tokio::spawn(keep_fresh(tls.certificates, shutdown.clone()));
    }
    accept_until_drain(&socket, &door, &shutdown).await;
    // A client that comes after this is told by the kernel, and goes elsewhere.
    waiting(socket).for_each(|(stream, peer)| door.refuse(stream, peer, STOPPING));
    drain(&places, &limits, &shutdown).await
}

async fn accept_until_drain(socket: &TcpListener, door: &Door, shutdown: &Shutdown) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.started() => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => door.enter(stream, peer),
            Err(error) if is_of_the_connection(&error) => tracing::debug!(%error, "a connection ended before it began"),
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection; raise the limit of open files if it goes on");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn drain(places: &Arc<Semaphore>, limits: &Limits, shutdown: &Shutdown) -> Outcome {
    let outcome = tokio::select! {
        // The end first: connections go away because of it.
        biased;
        () = shutdown.ended() => Outcome::Cut,
        _ = places.acquire_many(limits.connections_max) => Outcome::Drained,
        () = tokio::time::sleep(limits.drain_time) => Outcome::Cut,
    };
    if outcome == Outcome::Cut {
        let connections = limits.connections_max as usize - places.available_permits();
        if connections > 0 {
            tracing::warn!(connections, "connections were cut off");
        }
    }
    // Whatever is still open learns that its time is over.
    shutdown.end();
    outcome
}

struct Door {
    shared: Shared,
    places: Arc<Semaphore>,
    refusals: Refusals,
    metrics: Arc<Metrics>,
}

impl Door {
    fn enter(&self, stream: TcpStream, peer: SocketAddr) {
        match self.places.clone().try_acquire_owned() {
            Ok(permit) => {
                let place = Place { _permit: permit, _counted: self.metrics.connection_opened() };
                tokio::spawn(connection::run(stream, peer, place, self.shared.clone()));
            }
            Err(_) => self.refuse(stream, peer, FULL),
        }
    }

    /// It has a place if there is one, which the drain waits for.
    fn refuse(&self, stream: TcpStream, peer: SocketAddr, why: &'static str) {
        self.metrics.connection_refused();
        tracing::debug!(%peer, why, "connection refused");
        self.refusals.refuse(stream, why, self.places.clone().try_acquire_owned().ok());
    }
}
