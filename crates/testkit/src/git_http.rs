//! Git over HTTP with the real `git http-backend`, Basic authentication, and
//! failures on request.
//!
//! It runs in a thread of its own, so that tests with and without a runtime
//! use it alike.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{oneshot, watch};

use crate::bare;
use crate::daemon::{Scratch, free_port};

pub const USERNAME: &str = "git";
pub const PASSWORD: &str = "correct horse";
/// A pack of the largest test, several times over.
const BODY_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    #[default]
    Up,
    /// Nobody listens; whoever is connected already is told 503.
    Down,
    /// No credentials are good enough.
    Unauthorized,
    /// Each request waits first.
    Slow(Duration),
    /// Each request waits for another mode.
    Held,
    /// There is no room for files of more than 4 KiB.
    Full,
    /// Pushes are done and never answered.
    Mute,
}

pub struct GitHttp {
    scratch: Scratch,
    address: SocketAddr,
    mode: watch::Sender<Mode>,
    /// The listener's state, to wait for.
    listening: watch::Receiver<bool>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Backend {
    folder: PathBuf,
    mode: watch::Receiver<Mode>,
    authorization: String,
}

impl GitHttp {
    pub fn start() -> Self {
        let scratch = Scratch::new();
        // A port that nobody takes while the mode is `Down`.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let listener = bind(address);
        let (mode, modes) = watch::channel(Mode::Up);
        let (told, listening) = watch::channel(true);
        let (stop, stopped) = oneshot::channel();
        let authorization = format!("Basic {}", BASE64_STANDARD.encode(format!("{USERNAME}:{PASSWORD}")));
        let backend = Backend { folder: scratch.path().to_owned(), mode: modes.clone(), authorization };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let router = Router::new().fallback(serve).layer(DefaultBodyLimit::disable());
                let router = router.with_state(Arc::new(backend));
                tokio::select! {
                    () = listen(address, listener, router, modes, told) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { scratch, address, mode, listening, stop: Some(stop), thread: Some(thread) }
    }

    /// An empty repository; its place on disk.
    pub fn create(&self, name: &str) -> PathBuf {
        bare::create(self.scratch.path(), name)
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// With the good credentials inside.
    pub fn url_with_credentials(&self, name: &str) -> String {
        format!("http://{USERNAME}:{}@{}/{name}", PASSWORD.replace(' ', "%20"), self.address)
    }

    /// In force when it returns.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
        // Blocking, for tests without a runtime; it takes a moment.
        while *self.listening.borrow() == (mode == Mode::Down) {
            assert!(self.listening.has_changed().is_ok(), "the server of Git over HTTP has ended");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn refuse_pushes(&self, name: &str, reason: Option<&str>) {
        bare::refuse_pushes(&self.scratch.path().join(name), reason);
    }
}

impl Drop for GitHttp {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bind(address: SocketAddr) -> std::net::TcpListener {
    std::net::TcpListener::bind(address).unwrap_or_else(|error| panic!("{address} is taken: {error}"))
}

/// Listens at one address while the mode is not `Down`.
async fn listen(
    address: SocketAddr,
    first: std::net::TcpListener,
    router: Router,
    mut mode: watch::Receiver<Mode>,
    told: watch::Sender<bool>,
) {
    let mut next = Some(first);
    loop {
        let listener = next.take().unwrap_or_else(|| bind(address));
        listener.set_nonblocking(true).expect("a listener of the runtime");
        let listener = TcpListener::from_std(listener).expect("a listener of the runtime");
        told.send_replace(true);
        let is_down = mode.wait_for(|mode| *mode == Mode::Down);
        tokio::select! {
            result = axum::serve(listener, router.clone()) => result.expect("axum serves"),
            result = is_down => if result.is_err() { return },
        }
        told.send_replace(false);
        if mode.wait_for(|mode| *mode != Mode::Down).await.is_err() {
            return;
        }
    }
}

async fn serve(State(backend): State<Arc<Backend>>, request: Request) -> Response {
    let mut modes = backend.mode.clone();
    // Nobody sets another one any more: the server ends.
    let Ok(mode) = modes.wait_for(|mode| *mode != Mode::Held).await.map(|mode| *mode) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    match mode {
        Mode::Down => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mode::Slow(duration) => tokio::time::sleep(duration).await,
        Mode::Up | Mode::Held | Mode::Unauthorized | Mode::Full | Mode::Mute => {}
    }
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if mode == Mode::Unauthorized || authorization != Some(backend.authorization.as_str()) {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")];
        return (StatusCode::UNAUTHORIZED, challenge, "who are you?").into_response();
    }
    let is_push = request.method() == Method::POST && request.uri().path().ends_with("/git-receive-pack");
    let ran = run(&backend.folder, mode, request).await;
    if mode == Mode::Mute && is_push {
        std::future::pending::<()>().await;
    }
    match ran {
        Ok(response) => response,
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// One CGI call.
async fn run(folder: &Path, mode: Mode, request: Request) -> io::Result<Response> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.map_err(io::Error::other)?;
    let mut command = Command::from(match mode {
        Mode::Full => bare::command_without_room(folder),
        _ => bare::command(folder),
    });
    command.arg("http-backend").env("GIT_PROJECT_ROOT", folder).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("REQUEST_METHOD", parts.method.as_str()).env("PATH_INFO", parts.uri.path());
    command.env("QUERY_STRING", parts.uri.query().unwrap_or_default()).env("REMOTE_USER", USERNAME);
    command.env("CONTENT_LENGTH", body.len().to_string());
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "HTTP_GIT_PROTOCOL"),
    ] {
        if let Some(value) = parts.headers.get(header).and_then(|value| value.to_str().ok()) {
            command.env(variable, value);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().ok_or_else(|| io::Error::other("no pipe"))?;
    let feed = async move {
        // A backend that refuses does not read all.
        let _ = stdin.write_all(&body).await;
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    response_of(&output?.stdout)
}

/// Headers, an empty line, the content; `Status:` is the code.
fn response_of(output: &[u8]) -> io::Result<Response> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("git http-backend said nothing"))?;
    let mut status = StatusCode::OK;
    let mut headers = HeaderMap::new();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().unwrap_or_default();
            status = code.parse().map_err(io::Error::other)?;
        } else {
            let name = header::HeaderName::try_from(name).map_err(io::Error::other)?;
            headers.insert(name, value.parse().map_err(io::Error::other)?);
        }
    }
    Ok((status, headers, Body::from(Bytes::copy_from_slice(&output[end + 4..]))).into_response())
}
