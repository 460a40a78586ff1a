//! Where we listen, decided before anything is served.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_tls::Certificates;
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

use super::tls::{TlsError, TlsFiles};

/// One second in all: it takes a tenth on a busy machine.
const BIND_ATTEMPTS_MAX: usize = 20;
const BIND_PAUSE: Duration = Duration::from_millis(50);
/// Connections that the kernel keeps for us while we are busy accepting.
pub(super) const BACKLOG: u32 = 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    pub tls: Option<TlsFiles>,
    pub plaintext: Plaintext,
}

/// Whether tokens may cross a network unencrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plaintext {
    LoopbackOnly,
    /// Something in front of us speaks TLS.
    Allowed,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "{address} is not a loopback address and tokens would cross the network in the clear: \
         give --tls-cert and --tls-key, or --allow-plaintext if a proxy in front speaks TLS"
    )]
    Plaintext { address: SocketAddr },
    #[error("{address} is in use: stop the process that listens there, or choose another address with --listen")]
    InUse { address: SocketAddr },
    #[error("not allowed to listen on {address}: choose a port above 1023 with --listen, or grant the permission")]
    NotAllowed { address: SocketAddr },
    #[error("{address} is not an address of this machine: choose one with --listen")]
    NotOurs { address: SocketAddr },
    #[error("failed to listen on {address}")]
    Io { address: SocketAddr, source: io::Error },
    #[error("failed to set up TLS")]
    Tls(#[from] TlsError),
}

/// Bound: connections wait until [`super::serve`] takes them.
#[derive(Debug)]
pub struct Listener {
    pub(super) socket: TcpListener,
    pub(super) tls: Option<Tls>,
    address: SocketAddr,
}

/// How clients are met that speak TLS.
pub(super) struct Tls {
    pub certificates: Arc<Certificates>,
    pub acceptor: TlsAcceptor,
    /// For those that are turned away: HTTP/1.1 says it in one line.
    pub refusals: TlsAcceptor,
}

impl Tls {
    fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let certificates = Certificates::load(files)?;
        let acceptor = certificates.acceptor(&["h2", "http/1.1"])?;
        let refusals = certificates.acceptor(&["http/1.1"])?;
        Ok(Self { certificates, acceptor, refusals })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({:?})", self.certificates)
    }
}

impl Listener {
    /// Needs a tokio runtime.
    pub fn bind(listen: &Listen) -> Result<Self, ListenError> {
        let Listen { address, tls, plaintext } = listen;
        if tls.is_none() && *plaintext == Plaintext::LoopbackOnly && !address.ip().is_loopback() {
            return Err(ListenError::Plaintext { address: *address });
        }
        let tls = tls.clone().map(Tls::load).transpose()?;
        let socket = bind_patiently(*address).map_err(|source| classify(*address, source))?;
        let address = socket.local_addr().map_err(|source| classify(*address, source))?;
        Ok(Self { socket, tls, address })
    }

    /// With the real port, if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// A server that was killed may have been starting a program, which holds what
/// it inherits until it is that program. Nothing else runs at the start, so
/// this may block.
fn bind_patiently(address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 1..BIND_ATTEMPTS_MAX {
        match bind_socket(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => std::thread::sleep(BIND_PAUSE),
            outcome => return outcome,
        }
    }
    bind_socket(address)
}

fn bind_socket(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it: a peer that vanished is noticed at last.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn classify(address: SocketAddr, source: io::Error) -> ListenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address },
        io::ErrorKind::PermissionDenied => ListenError::NotAllowed { address },
        io::ErrorKind::AddrNotAvailable => ListenError::NotOurs { address },
        _ => ListenError::Io { address, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(address: &str, plaintext: Plaintext) -> Result<Listener, String> {
        let listen = Listen { address: address.parse().unwrap(), tls: None, plaintext };
        Listener::bind(&listen).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn only_loopback_is_plain_unless_asked_for() {
        for (address, plaintext, is_good) in [
            ("127.0.0.1:0", Plaintext::LoopbackOnly, true),
            ("127.9.9.9:0", Plaintext::LoopbackOnly, true),
            ("0.0.0.0:0", Plaintext::LoopbackOnly, false),
            ("[::]:0", Plaintext::LoopbackOnly, false),
            ("0.0.0.0:0", Plaintext::Allowed, true),
        ] {
            let bound = bind(address, plaintext);
            assert_eq!(bound.is_ok(), is_good, "{address}");
            if let Err(error) = bound {
                assert!(error.contains("--tls-cert") && error.contains("--allow-plaintext"), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn errors_name_the_address_and_the_remedy() {
        let first = bind("127.0.0.1:0", Plaintext::LoopbackOnly).unwrap();
        let taken = first.address().to_string();
        assert_eq!(first.url(), format!("http://{taken}"));
        let error = bind(&taken, Plaintext::LoopbackOnly).unwrap_err();
        assert!(error.contains(&taken) && error.contains("in use") && error.contains("--listen"), "{error}");
        let error = bind("203.0.113.1:7300", Plaintext::Allowed).unwrap_err();
        assert!(error.contains("203.0.113.1:7300") && error.contains("--listen"), "{error}");
    }
}
