//! One connection: handshake, and requests until one side is done.
//!
//! Invariants: every wait for the client has an end: for the handshake, for the
//! first request, and, in the stream itself, for it to read. Who was asked for
//! credentials can give them on the same connection, even if a drain begins.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::limits::Limits;
use super::shutdown::Shutdown;
use super::stream::{Place, Tracked};

/// Running requests of one HTTP/2 connection; the rest wait at the client.
const HTTP2_STREAMS_MAX: u32 = 128;
/// A silent HTTP/2 peer is asked for a sign of life this often, and has as
/// long to give it.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);

/// hyper's smallest buffer; it refuses to be given less.
const HTTP1_BUFFER_BYTES_MIN: usize = 8192;

/// From a challenge to its answer, if a drain begins in between: the client has
/// it and sends it at once, so this is a slow way there and back.
const CHALLENGE_GRACE: Duration = Duration::from_secs(5);

/// What all connections of a listener share.
#[derive(Clone)]
pub(super) struct Shared {
    pub router: Router,
    pub limits: Limits,
    pub shutdown: Shutdown,
    pub tls: Option<TlsAcceptor>,
}

/// Serves a connection to its end.
pub(super) async fn run(stream: TcpStream, peer: SocketAddr, place: Place, context: Shared) {
    // Small frames matter more than full segments: a watch event must not
    // wait for the next one.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "failed to set TCP_NODELAY");
    }
    let tracked = Tracked::new(stream, place, context.limits.write_stall_timeout);
    match context.tls.clone() {
        None => run_http(tracked, peer, context).await,
        Some(tls) => match timeout(context.limits.header_read_timeout, tls.accept(tracked)).await {
            Ok(Ok(stream)) => run_http(stream, peer, context).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
        },
    }
}

async fn run_http(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, peer: SocketAddr, context: Shared) {
    let Shared { router, limits, shutdown, .. } = context;
    let (sender, heard) = watch::channel(Heard::Nothing);
    let service = service_fn({
        let shutdown = shutdown.clone();
        move |request| answer(router.clone(), request, peer, sender.clone(), shutdown.clone())
    });
    let builder = builder(&limits);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    // hyper's own header timeout starts with the first byte of HTTP/1, which
    // a client may never send.
    let mut first_due = pin!(tokio::time::sleep(limits.header_read_timeout));
    let mut may_end = pin!(may_end(&shutdown, heard.clone()));
    let (mut awaits_first, mut runs) = (true, true);
    loop {
        tokio::select! {
            // The connection first: what has arrived counts as in time.
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%peer, error = &*error, "connection ended");
                }
                return;
            }
            () = first_due.as_mut(), if awaits_first => {
                if *heard.borrow() == Heard::Nothing {
                    return tracing::debug!(%peer, "no request in time");
                }
                awaits_first = false;
            }
            () = may_end.as_mut(), if runs => {
                connection.as_mut().graceful_shutdown();
                runs = false;
            }
            () = shutdown.ended() => return,
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Who has sent a request and says that it sends nothing more may still
        // wait for the answer (RFC 9112, 6.3). Who is gone looks the same until it
        // is written to: its request ends by itself, and the answer finds nobody.
        .half_close(true)
        .header_read_timeout(limits.header_read_timeout)
        .max_buf_size((limits.header_bytes_max as usize).max(HTTP1_BUFFER_BYTES_MIN));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.header_bytes_max)
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_INTERVAL);
    builder
}

/// What a connection has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heard {
    Nothing,
    Request,
    /// The last request was asked for credentials. A git that has them in its
    /// address and cannot send them any more says that they are wrong.
    Challenged(Instant),
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    peer: SocketAddr,
    heard: watch::Sender<Heard>,
    shutdown: Shutdown,
) -> Result<Response<Body>, Infallible> {
    heard.send_replace(Heard::Request);
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    let is_http1 = request.version() < Version::HTTP_2;
    let mut response = router.oneshot(request).await?;
    match response.status() {
        StatusCode::UNAUTHORIZED if !shutdown.is_draining() => {
            heard.send_replace(Heard::Challenged(Instant::now()));
        }
        // hyper says it only of what began before the drain.
        status if is_http1 && shutdown.is_draining() && status != StatusCode::SWITCHING_PROTOCOLS => {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    Ok(response)
}

/// Resolves when the request that runs, if one does, is to be the last.
async fn may_end(shutdown: &Shutdown, mut heard: watch::Receiver<Heard>) {
    shutdown.started().await;
    let Heard::Challenged(at) = *heard.borrow_and_update() else { return };
    // Late, or the service is gone: then there is nobody to wait for.
    let _ = timeout_at(at + CHALLENGE_GRACE, heard.changed()).await;
}
