//! One call of an endpoint: signed, timed, bounded.
//!
//! Redirects are not followed and no proxy is used: a call goes where the
//! hook's author said, and nowhere else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, Mac};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::Sha256;
use tidegate_files::{FileError, FileKind, Unread};
use url::Url;

use super::answer::{ANSWER_BYTES_MAX, Answer, HookError, judge};
use super::spec::HookSpec;

/// Seconds since 1970: part of what is signed, so that a call cannot be
/// played back later.
pub const TIMESTAMP_HEADER: &str = "tidegate-timestamp";
/// `v1=` and the HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal.
pub const SIGNATURE_HEADER: &str = "tidegate-signature";
/// A key of a file; longer ones are somebody's mistake.
const SECRET: FileKind = FileKind { what: "the secret", bytes_max: 64 << 10 };

/// Why a hook cannot make calls at all.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error(
        "the controller manager has no secrets: give the process that runs it, `tidegate serve` or `tidegate control`, --secrets-dir DIR with files NAMESPACE/NAME/KEY"
    )]
    NoSecrets,
    #[error("the secret {label} of the secrets directory {reason}")]
    Secret { label: String, reason: Unread },
    #[error("the secret {0} of the secrets directory is empty: write the key to it")]
    SecretEmpty(String),
    #[error("spec.endpoint.url is not an address that can be called: write it as https://HOST/PATH")]
    Url(#[source] url::ParseError),
    #[error("spec.endpoint.caBundle holds no certificate: it takes PEM, `-----BEGIN CERTIFICATE-----`")]
    CaBundle,
    #[error("spec.endpoint.caBundle has a certificate that cannot be read: give the authority's own, as PEM")]
    CaCertificate(#[source] rustls::Error),
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
    #[error("failed to set up HTTP")]
    Http(#[source] reqwest::Error),
}

pub struct Endpoint {
    client: reqwest::Client,
    url: Url,
    hook: Arc<str>,
    timeout: Duration,
    secret: Option<SecretFile>,
}

/// Read for each call, so that a rotated one takes effect with the next.
struct SecretFile {
    path: PathBuf,
    label: String,
}

/// What the endpoint gets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'c> {
    hook: &'c str,
    /// 1, and more after failures.
    attempt: u32,
    object: &'c RawValue,
    related: BTreeMap<&'c str, Along<Box<RawValue>>>,
}

/// What is sent along under one name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Along<T> {
    /// `None` if it does not exist.
    One(Option<T>),
    Many(Vec<T>),
}

impl<T> Along<T> {
    fn try_map<U, E>(&self, map: impl Fn(&T) -> Result<U, E>) -> Result<Along<U>, E> {
        Ok(match self {
            Self::One(one) => Along::One(one.as_ref().map(map).transpose()?),
            Self::Many(many) => Along::Many(many.iter().map(map).collect::<Result<_, _>>()?),
        })
    }
}

/// Objects as JSON text, by the name that the hook gives them.
pub type RelatedObjects = Vec<(String, Along<Bytes>)>;

impl Endpoint {
    pub fn new(spec: &HookSpec, secrets_dir: Option<&Path>) -> Result<Self, EndpointError> {
        let secret = match &spec.secret {
            None => None,
            Some(secret) => {
                let dir = secrets_dir.ok_or(EndpointError::NoSecrets)?;
                let label = format!("{}/{}/{}", secret.namespace, secret.name, secret.key);
                let path = dir.join(&secret.namespace).join(&secret.name).join(&secret.key);
                let file = SecretFile { path, label };
                // A hook that could not sign says so before its first call.
                file.read()?;
                Some(file)
            }
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(spec.ca_bundle.as_deref())?)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(spec.timeout)
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(EndpointError::Http)?;
        let url = Url::parse(&spec.url).map_err(EndpointError::Url)?;
        Ok(Self { client, url, hook: spec.name.clone(), timeout: spec.timeout, secret })
    }

    pub async fn call(
        &self,
        object: &[u8],
        related: &RelatedObjects,
        attempt: u32,
        now: i64,
    ) -> Result<Answer, HookError> {
        let body = self.body(object, related, attempt)?;
        let timestamp = now.to_string();
        let mut request = self.client.post(self.url.clone()).header("content-type", "application/json");
        request = request.header(TIMESTAMP_HEADER, &timestamp);
        if let Some(secret) = &self.secret {
            // Not this object's fault: the hook's author mends the file.
            let key = secret.read().map_err(|error| HookError::Unreachable(described(&error)))?;
            request = request.header(SIGNATURE_HEADER, sign(&key, &timestamp, &body));
        }
        let response = request.body(body).send().await.map_err(|error| self.failure(&error))?;
        let code = response.status().as_u16();
        let body = self.read(response).await?;
        judge(code, &body)
    }

    fn body(&self, object: &[u8], related: &RelatedObjects, attempt: u32) -> Result<Vec<u8>, HookError> {
        let raw = |json: &[u8]| -> Result<Box<RawValue>, HookError> {
            serde_json::from_slice(json)
                .map_err(|error| HookError::Retryable(format!("an object does not read: {error}")))
        };
        let object = raw(object)?;
        let related = related
            .iter()
            .map(|(name, along)| Ok((name.as_str(), along.try_map(|json| raw(json))?)))
            .collect::<Result<_, HookError>>()?;
        let call = Call { hook: &self.hook, attempt, object: &object, related };
        serde_json::to_vec(&call).map_err(|error| HookError::Retryable(format!("the call does not encode: {error}")))
    }

    async fn read(&self, mut response: reqwest::Response) -> Result<Vec<u8>, HookError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failure(&error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                let message =
                    format!("the endpoint's answer has more than {ANSWER_BYTES_MAX} bytes: report less in the status");
                return Err(HookError::Retryable(message));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn failure(&self, error: &reqwest::Error) -> HookError {
        if error.is_timeout() {
            let message = format!(
                "the endpoint did not answer within {:?}: make it faster, or raise spec.endpoint.timeout",
                self.timeout
            );
            return HookError::Retryable(message);
        }
        let mut reason: &dyn std::error::Error = error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        HookError::Unreachable(format!("the endpoint {} cannot be reached: {reason}", self.url))
    }
}

/// The value of [`SIGNATURE_HEADER`].
pub fn sign(secret: &[u8], timestamp: &str, body: &[u8]) -> String {
    use std::fmt::Write;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().iter().fold(String::from("v1="), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl SecretFile {
    /// Without the line end that editors leave.
    fn read(&self) -> Result<Vec<u8>, EndpointError> {
        let label = self.label.clone();
        let bytes = match SECRET.read(&self.path) {
            Ok(bytes) => bytes,
            // By its label: whoever reads the condition need not know the server's folders.
            Err(FileError { reason, .. }) => return Err(EndpointError::Secret { label, reason }),
        };
        match bytes.trim_ascii_end() {
            [] => Err(EndpointError::SecretEmpty(label)),
            secret => Ok(secret.to_vec()),
        }
    }
}

/// With its source, for a condition.
pub(super) fn described(error: &EndpointError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

fn tls(ca_bundle: Option<&str>) -> Result<ClientConfig, EndpointError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(EndpointError::Tls)?;
    let Some(pem) = ca_bundle else {
        return Ok(builder.with_platform_verifier().map_err(EndpointError::Tls)?.with_no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|_| EndpointError::CaBundle)?;
        roots.add(certificate).map_err(EndpointError::CaCertificate)?;
    }
    if roots.is_empty() {
        return Err(EndpointError::CaBundle);
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf '1.{}' | openssl dgst -sha256 -hmac key` shows it.
    #[test]
    fn signatures_are_hmac_sha256() {
        let expected = "v1=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224";
        assert_eq!(sign(b"key", "1", b"{}"), expected);
    }
}
