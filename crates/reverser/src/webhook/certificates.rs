//! The webhook's own certificate, where no files are given: the operator makes
//! it at the start and puts it into the registration.

use std::sync::Arc;

use tidegate_tls::{CertificateError, Certificates};

#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    #[error("failed to make a certificate for {names:?}")]
    Make { names: Vec<String>, source: rcgen::Error },
    #[error("failed to use the certificate that was made")]
    Use(#[from] CertificateError),
}

/// Self-signed, for these host names and addresses.
pub fn make_certificate(names: Vec<String>) -> Result<Arc<Certificates>, MakeError> {
    let made = rcgen::generate_simple_self_signed(names.clone()).map_err(|source| MakeError::Make { names, source })?;
    Ok(Certificates::from_pem(&made.cert.pem(), &made.signing_key.serialize_pem())?)
}
