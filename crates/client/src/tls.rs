//! Whom this client trusts: the system's roots, or the file that was named.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::ClientError;

/// Of a file of certificates: a system's has a quarter of a megabyte.
const CERTIFICATES_BYTES_MAX: u64 = 16 << 20;

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
    let pem = read(path).map_err(|source| ClientError::Certificates { path: path.into(), source })?;
    let unusable = || ClientError::NoCertificate { path: path.into() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_| unusable())?).map_err(|_| unusable())?;
    }
    if roots.is_empty() { Err(unusable()) } else { Ok(roots) }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut pem = Vec::new();
    let bytes = File::open(path)?.take(CERTIFICATES_BYTES_MAX + 1).read_to_end(&mut pem)?;
    if bytes as u64 > CERTIFICATES_BYTES_MAX {
        return Err(io::Error::other("it has more than 16 MiB, which certificates do not"));
    }
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_certificates() {
        for (path, expected) in
            [("/dev/null", "holds no certificate"), ("/dev/zero", "failed to read"), ("/nowhere", "failed to read")]
        {
            let error = client_config(Some(Path::new(path))).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(expected), "{error}");
        }
    }
}
