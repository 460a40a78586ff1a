//! Whom this client trusts: the system's roots, or the file that was named.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tidegate_files::FileKind;

use crate::ClientError;

/// A system's bundle has a quarter of a megabyte.
const CERTIFICATES: FileKind = FileKind { what: "the certificates to trust", bytes_max: 16 << 20 };

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
    let pem = CERTIFICATES.read(path)?;
    let unusable = || ClientError::NoCertificate { path: path.into() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_| unusable())?).map_err(|_| unusable())?;
    }
    if roots.is_empty() { Err(unusable()) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_certificates() {
        for (path, expected) in [
            ("/dev/null", "holds no certificate"),
            ("/dev/zero", "has more than 16777216 bytes"),
            ("/dev", "is a directory"),
            ("/nowhere", "does not exist"),
        ] {
            let error = client_config(Some(Path::new(path))).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(expected), "{error}");
        }
    }
}
