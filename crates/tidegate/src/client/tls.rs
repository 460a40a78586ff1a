//! Whom this client trusts: the system's roots, or the file that was named.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// One configuration for HTTP and for the WebSocket.
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("failed to set up TLS")?;
    let config = match ca_file {
        Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
        None => {
            builder.with_platform_verifier().context("failed to read the system's certificates")?.with_no_client_auth()
        }
    };
    Ok(Arc::new(config))
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let reading = || format!("failed to read the certificates of {}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).with_context(reading)? {
        roots.add(certificate.with_context(reading)?).with_context(reading)?;
    }
    if roots.is_empty() {
        bail!("{} holds no certificate: --ca-file takes PEM, `-----BEGIN CERTIFICATE-----`", path.display());
    }
    Ok(roots)
}
