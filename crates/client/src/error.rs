//! Why an operation has no answer.

use std::path::PathBuf;

use tidegate_files::FileError;

use crate::{Refusal, TokenError};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the server `{server}` is not an http or https URL{}: write it as `http://127.0.0.1:7300` or `https://tidegate.example.com`", reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default())]
    Address { server: String, reason: Option<String> },
    #[error(
        "the address of the server at {host} holds a user or a password: leave them out, and name the token's file with --token-file"
    )]
    Credentials { host: String },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Certificates(#[from] FileError),
    #[error("{} holds no certificate that can be used: give PEM, `-----BEGIN CERTIFICATE-----`", path.display())]
    NoCertificate { path: PathBuf },
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
    #[error("failed to set up the HTTP client")]
    Http(#[source] reqwest::Error),
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String, remedy: String },
    #[error("the answer broke off")]
    BrokeOff(#[source] reqwest::Error),
    #[error("the answer has more than {limit} bytes: ask for less")]
    TooLarge { limit: usize },
    /// Say, a proxy's page.
    #[error("{url} does not answer as Tidegate does (HTTP {status}): {text}")]
    Foreign { url: String, status: u16, text: String },
    /// A refusal that is not GraphQL's.
    #[error("{text}")]
    Failed { status: u16, text: String },
    #[error(transparent)]
    Refused(Refusal),
}
