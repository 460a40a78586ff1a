//! Whom this client trusts: the system's roots, or the file that was named.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::ClientError;

/// One configuration for HTTP and for the WebSocket.
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, ClientError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?;
    let config = match ca_file {
        Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
        None => builder.with_platform_verifier().map_err(ClientError::Tls)?.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn roots(path: &Path) -> Result<RootCertStore, ClientError> {
    let pem = fs::read(path).map_err(|source| ClientError::Certificates { path: path.into(), source })?;
    let unusable = || ClientError::NoCertificate { path: path.into() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_| unusable())?).map_err(|_| unusable())?;
    }
    if roots.is_empty() { Err(unusable()) } else { Ok(roots) }
}
