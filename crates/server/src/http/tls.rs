//! TLS from two PEM files, which may be replaced while we run.
//!
//! Invariant: a certificate that cannot be read never replaces one that works.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;

use super::shutdown::Shutdown;

/// How soon a renewed certificate is noticed without a SIGHUP.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate chain, the server's own certificate first.
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("failed to read {}: give a readable PEM file", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} holds no {expected}: give a PEM file", path.display())]
    NotPem { path: PathBuf, expected: &'static str },
    #[error("{} and {} do not belong together or are not usable", files.cert.display(), files.key.display())]
    Unusable { files: TlsFiles, source: rustls::Error },
}

/// The certificate in force.
#[derive(Debug)]
pub(super) struct Certificates {
    files: TlsFiles,
    current: ArcSwap<CertifiedKey>,
}

impl Certificates {
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    pub fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(read(&self.files)?));
        Ok(())
    }

    /// `protocols` as ALPN names them, the best first.
    pub fn acceptor(self: &Arc<Self>, protocols: &[&str]) -> TlsAcceptor {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reloads at SIGHUP and when a file changes, until the drain.
    pub async fn keep_fresh(self: Arc<Self>, shutdown: Shutdown) {
        let mut hangup = match signal(SignalKind::hangup()) {
            Ok(hangup) => hangup,
            Err(error) => return tracing::error!(%error, "SIGHUP cannot be heard: certificates are not reloaded"),
        };
        let (mut seen, mut ticks) = (self.stamp(), tokio::time::interval(RELOAD_INTERVAL));
        loop {
            let is_asked = tokio::select! {
                () = shutdown.started() => return,
                _ = hangup.recv() => true,
                _ = ticks.tick() => false,
            };
            let stamp = self.stamp();
            if is_asked || stamp != seen {
                self.reload_and_tell();
            }
            seen = stamp;
        }
    }

    fn reload_and_tell(&self) {
        let cert = self.files.cert.display();
        match self.reload() {
            Ok(()) => tracing::info!(%cert, "certificate reloaded"),
            Err(error) => tracing::error!(%cert, error = &error as &dyn std::error::Error, "the old certificate stays"),
        }
    }

    fn stamp(&self) -> [Option<(SystemTime, u64)>; 2] {
        [&self.files.cert, &self.files.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let (cert, key) = (read_file(&files.cert)?, read_file(&files.key)?);
    let not_pem = |path: &Path, expected| TlsError::NotPem { path: path.to_owned(), expected };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&cert).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| not_pem(&files.cert, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| not_pem(&files.key, "private key"))?;
    CertifiedKey::from_der(chain, key, &provider())
        .map_err(|source| TlsError::Unusable { files: files.clone(), source })
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
