//! PEM, understood.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tidegate_files::FileKind;

use crate::{CertificateError, CertificateFiles};

/// A bundle of all public authorities has a quarter of a megabyte.
const BUNDLE_BYTES_MAX: u64 = 16 << 20;
const CERTIFICATE: FileKind = FileKind { what: "the certificate", bytes_max: BUNDLE_BYTES_MAX };
const AUTHORITIES: FileKind = FileKind { what: "the certificates to trust", bytes_max: BUNDLE_BYTES_MAX };
/// An RSA key of 16,384 bits has 13 KiB.
const KEY: FileKind = FileKind { what: "the private key", bytes_max: 1 << 20 };

#[derive(Debug)]
pub(crate) struct Loaded {
    pub key: Arc<CertifiedKey>,
    pub ca_pem: Arc<str>,
}

impl Loaded {
    pub fn read(files: &CertificateFiles) -> Result<Self, CertificateError> {
        let (cert, key) = (CERTIFICATE.read(&files.cert)?, KEY.read(&files.key)?);
        let certified = certified((&name(&files.cert), &cert), (&name(&files.key), &key))?;
        let ca = files.ca.as_deref().map(|ca| AUTHORITIES.read(ca)).transpose()?.unwrap_or(cert);
        Ok(Self { key: Arc::new(certified), ca_pem: String::from_utf8_lossy(&ca).into() })
    }

    pub fn parse(cert: &str, key: &str) -> Result<Self, CertificateError> {
        let certified = certified(("the certificate", cert.as_bytes()), ("the key", key.as_bytes()))?;
        Ok(Self { key: Arc::new(certified), ca_pem: cert.into() })
    }
}

/// Each with the name that errors call it by.
fn certified(
    (cert_name, cert): (&str, &[u8]),
    (key_name, key): (&str, &[u8]),
) -> Result<CertifiedKey, CertificateError> {
    let not_pem = |from: &str, expected| CertificateError::NotPem { from: from.to_owned(), expected };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(cert).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| not_pem(cert_name, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| not_pem(key_name, "private key"))?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|source| CertificateError::Unusable {
        cert: cert_name.to_owned(),
        key: key_name.to_owned(),
        source,
    })
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
