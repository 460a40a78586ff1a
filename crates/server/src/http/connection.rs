//! One connection: handshake, and requests until one side is done.
//!
//! Invariant: every wait for the client has an end: for the handshake, for the
//! first request, and, in the stream itself, for it to read.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
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
        Some(tls) => match tokio::time::timeout(context.limits.header_read_timeout, tls.accept(tracked)).await {
            Ok(Ok(stream)) => run_http(stream, peer, context).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
        },
    }
}

async fn run_http(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, peer: SocketAddr, context: Shared) {
    let Shared { router, limits, shutdown, .. } = context;
    let has_request = Arc::new(AtomicBool::new(false));
    let service = service_fn({
        let has_request = has_request.clone();
        move |request| {
            has_request.store(true, Ordering::Relaxed);
            answer(router.clone(), request, peer)
        }
    });
    let builder = builder(&limits);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    // hyper's own header timeout starts with the first byte of HTTP/1, which
    // a client may never send.
    let mut first_due = pin!(tokio::time::sleep(limits.header_read_timeout));
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
                if !has_request.load(Ordering::Relaxed) {
                    return tracing::debug!(%peer, "no request in time");
                }
                awaits_first = false;
            }
            () = shutdown.started(), if runs => {
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

async fn answer(router: Router, request: Request<Incoming>, peer: SocketAddr) -> Result<Response<Body>, Infallible> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    router.oneshot(request).await
}
