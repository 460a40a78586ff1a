//! The webhook's certificate: from files that may be replaced while we run, or
//! made at the start and put into the registration.
//!
//! Invariant: a certificate that cannot be read never replaces one that works.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// How soon a renewed certificate is noticed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// What the API server is to trust; the certificate itself if left out.
    pub ca: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("failed to read {}: give a readable PEM file", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{from} holds no {expected}: give a PEM file")]
    NotPem { from: String, expected: &'static str },
    #[error("{from}: the certificate and the key do not belong together or are not usable")]
    Unusable { from: String, source: rustls::Error },
    #[error("failed to make a certificate for {names:?}")]
    Make { names: Vec<String>, source: rcgen::Error },
}

#[derive(Debug)]
pub struct Certificates {
    files: Option<CertificateFiles>,
    current: ArcSwap<CertifiedKey>,
    ca_pem: ArcSwap<String>,
    /// The files were read again: the API server may have to trust another.
    pub(super) renewed: Notify,
}

impl Certificates {
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, CertificateError> {
        let (key, ca_pem) = read(&files)?;
        Ok(Arc::new(Self {
            files: Some(files),
            current: ArcSwap::from_pointee(key),
            ca_pem: ArcSwap::from_pointee(ca_pem),
            renewed: Notify::new(),
        }))
    }

    /// Self-signed, for these host names and addresses.
    pub fn make(names: Vec<String>) -> Result<Arc<Self>, CertificateError> {
        let made = rcgen::generate_simple_self_signed(names.clone())
            .map_err(|source| CertificateError::Make { names, source })?;
        let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certified = certified("the certificate that was made", cert.as_bytes(), key.as_bytes())?;
        Ok(Arc::new(Self {
            files: None,
            current: ArcSwap::from_pointee(certified),
            ca_pem: ArcSwap::from_pointee(cert),
            renewed: Notify::new(),
        }))
    }

    /// What the API server is to trust.
    pub fn ca_pem(&self) -> Arc<String> {
        self.ca_pem.load_full()
    }

    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Never ends; looks at the files now and then.
    pub async fn keep_fresh(self: Arc<Self>) {
        let Some(files) = &self.files else { return std::future::pending().await };
        let mut seen = stamp(files);
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let now = stamp(files);
            if now == seen {
                continue;
            }
            seen = now;
            match read(files) {
                Ok((key, ca_pem)) => {
                    self.current.store(Arc::new(key));
                    self.ca_pem.store(Arc::new(ca_pem));
                    self.renewed.notify_one();
                    tracing::info!(cert = %files.cert.display(), "the webhook's certificate was reloaded");
                }
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "the webhook's old certificate stays");
                }
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
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

fn read(files: &CertificateFiles) -> Result<(CertifiedKey, String), CertificateError> {
    let read = |path: &PathBuf| fs::read(path).map_err(|source| CertificateError::Read { path: path.clone(), source });
    let (cert, key) = (read(&files.cert)?, read(&files.key)?);
    let certified = certified(&files.cert.display().to_string(), &cert, &key)?;
    let ca = files.ca.as_ref().map(read).transpose()?.unwrap_or(cert);
    Ok((certified, String::from_utf8_lossy(&ca).into_owned()))
}

fn certified(from: &str, cert: &[u8], key: &[u8]) -> Result<CertifiedKey, CertificateError> {
    let not_pem = |expected| CertificateError::NotPem { from: from.to_owned(), expected };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(cert).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| not_pem("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| not_pem("private key"))?;
    CertifiedKey::from_der(chain, key, &provider())
        .map_err(|source| CertificateError::Unusable { from: from.to_owned(), source })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
