//! A server's certificate: from PEM files, which may be replaced while it
//! runs, or from memory.
//!
//! Invariant: a certificate that cannot be read never replaces one that works.

mod pem;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tidegate_files::FileError;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use pem::Loaded;

/// How soon a renewed certificate is noticed by itself.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    /// The certificate chain, the server's own certificate first.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// What clients are to trust, where they are told; the chain if left out.
    pub ca: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error(transparent)]
    Read(#[from] FileError),
    #[error("{from} holds no {expected}: give a PEM file")]
    NotPem { from: String, expected: &'static str },
    #[error("{cert} and {key} do not belong together or are not usable")]
    Unusable { cert: String, key: String, source: rustls::Error },
    #[error("failed to prepare TLS")]
    Prepare(#[source] rustls::Error),
}

/// The certificate in force.
#[derive(Debug)]
pub struct Certificates {
    files: Option<CertificateFiles>,
    current: ArcSwap<Loaded>,
    renewed: Notify,
}

impl Certificates {
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, CertificateError> {
        let loaded = Loaded::read(&files)?;
        Ok(Arc::new(Self::new(Some(files), loaded)))
    }

    /// One that never changes.
    pub fn from_pem(cert: &str, key: &str) -> Result<Arc<Self>, CertificateError> {
        Ok(Arc::new(Self::new(None, Loaded::parse(cert, key)?)))
    }

    fn new(files: Option<CertificateFiles>, loaded: Loaded) -> Self {
        Self { files, current: ArcSwap::from_pointee(loaded), renewed: Notify::new() }
    }

    /// What clients are to trust, as PEM.
    pub fn ca_pem(&self) -> Arc<str> {
        self.current.load().ca_pem.clone()
    }

    /// Reads the files again; what is in force stays if that fails.
    pub fn reload(&self) -> Result<(), CertificateError> {
        if let Some(files) = &self.files {
            self.current.store(Arc::new(Loaded::read(files)?));
            self.renewed.notify_one();
        }
        Ok(())
    }

    /// Waits for the next reload; for one waiter.
    pub async fn renewed(&self) {
        self.renewed.notified().await;
    }

    /// `protocols` as ALPN names them, the best first.
    pub fn acceptor(self: &Arc<Self>, protocols: &[&str]) -> Result<TlsAcceptor, CertificateError> {
        let mut config = ServerConfig::builder_with_provider(pem::provider())
            .with_safe_default_protocol_versions()
            .map_err(CertificateError::Prepare)?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reloads when it is asked to and when a file changes. Never ends.
    pub async fn keep_fresh(&self, asked: &Notify) {
        let Some(files) = &self.files else { return std::future::pending().await };
        let mut seen = stamp(files);
        loop {
            let is_asked = tokio::select! {
                () = asked.notified() => true,
                () = tokio::time::sleep(RELOAD_INTERVAL) => false,
            };
            let now = stamp(files);
            if is_asked || now != seen {
                self.reload_and_tell(files);
            }
            seen = now;
        }
    }

    fn reload_and_tell(&self, files: &CertificateFiles) {
        let cert = files.cert.display();
        match self.reload() {
            Ok(()) => tracing::info!(%cert, "certificate reloaded"),
            Err(error) => tracing::error!(%cert, error = &error as &dyn std::error::Error, "the old certificate stays"),
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load().key.clone())
    }
}

fn stamp(files: &CertificateFiles) -> Vec<Option<(SystemTime, u64)>> {
    let paths = [Some(&files.cert), Some(&files.key), files.ca.as_ref()];
    let stamp = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    paths.into_iter().flatten().map(stamp).collect()
}
