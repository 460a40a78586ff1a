//! What a remote host wants to see before it lets us in, read from the files
//! of a secret in the shapes that users of Kubernetes know.
//!
//! Invariant: nothing of it is ever shown. Errors name the files, never what
//! is in them.

use std::collections::BTreeMap;
use std::fmt;

use crate::remote_url::{RemoteUrl, Scheme};

/// The user name that goes with a token; every host takes it, or any.
const TOKEN_USER: &str = "x-access-token";

pub const USERNAME: &str = "username";
pub const PASSWORD: &str = "password";
/// A token that is sent as a password.
pub const TOKEN: &str = "token";
/// A token that is sent as `Authorization: Bearer`.
pub const BEARER: [&str; 2] = ["bearer", "bearerToken"];
pub const PRIVATE_KEY: [&str; 2] = ["ssh-privatekey", "identity"];
pub const PASSPHRASE: [&str; 2] = ["ssh-password", PASSWORD];
pub const KNOWN_HOSTS: &str = "known_hosts";
pub const CA: [&str; 2] = ["ca.crt", "caFile"];

/// The files of one secret, by name.
pub type SecretFiles = BTreeMap<String, Vec<u8>>;

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Credentials {
    /// A repository that everybody may read.
    Anonymous,
    Basic {
        username: Secret,
        password: Secret,
    },
    Bearer(Secret),
    Ssh {
        private_key: Secret,
        passphrase: Option<Secret>,
        /// Whom we talk to is checked, always.
        known_hosts: String,
    },
}

/// How to get in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    pub credentials: Credentials,
    /// Certificates (PEM) to trust instead of the system's.
    pub ca: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("`{0}` is not text on one line: write the value alone into the file")]
    Line(&'static str),
    #[error("`{0}` is not text")]
    Text(&'static str),
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("`{present}` is there, and `{missing}` is not: a login needs both")]
    Half { present: &'static str, missing: &'static str },
    #[error(
        "SSH needs a secret: name one in secretRef, with the files `ssh-privatekey` (or `identity`) and `known_hosts`"
    )]
    NoSecret,
    #[error("there is no `ssh-privatekey` (or `identity`): SSH needs a private key")]
    NoKey,
    #[error("`{0}` is not a private key: it must begin with `-----BEGIN`")]
    Key(&'static str),
    #[error(
        "there is no `known_hosts`: the host's key is always checked; add the output of `ssh-keyscan {host}`, after comparing it with what the host publishes"
    )]
    NoKnownHosts { host: String },
    #[error("`{0}` holds no certificate: it must contain `-----BEGIN CERTIFICATE-----`")]
    Certificate(&'static str),
    #[error("it holds an SSH key, and the address begins with {0}: use the address for SSH, or a secret with a login")]
    KeyForHttp(&'static str),
    #[error(
        "none of its files is known here: expected `username` and `password`, `token`, `bearer`, `ssh-privatekey` and `known_hosts`, or `ca.crt`"
    )]
    Nothing,
}

impl Access {
    pub fn anonymous() -> Self {
        Self { credentials: Credentials::Anonymous, ca: None }
    }

    /// `None` for a repository that names no secret.
    pub fn read(files: Option<&SecretFiles>, url: &RemoteUrl) -> Result<Self, CredentialsError> {
        match (files, url.scheme()) {
            (None, Scheme::Ssh) => Err(CredentialsError::NoSecret),
            (None, _) => Ok(Self::anonymous()),
            (Some(files), Scheme::Ssh) => Ok(Self { credentials: ssh(files, url)?, ca: None }),
            (Some(files), Scheme::Https | Scheme::Http) => {
                let ca = CA.into_iter().find_map(|name| text(files, name).map(|text| certificate(name, &text?)));
                let ca = ca.transpose()?;
                let credentials = http(files, url, ca.is_some())?;
                Ok(Self { credentials, ca })
            }
        }
    }

    /// Whatever must not appear in a message.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        match &self.credentials {
            Credentials::Anonymous => Vec::new(),
            Credentials::Basic { username: _, password } => vec![password.reveal()],
            Credentials::Bearer(token) => vec![token.reveal()],
            Credentials::Ssh { passphrase, .. } => passphrase.iter().map(Secret::reveal).collect(),
        }
    }
}

fn http(files: &SecretFiles, url: &RemoteUrl, has_ca: bool) -> Result<Credentials, CredentialsError> {
    let username = line(files, USERNAME).transpose()?;
    let password = line(files, PASSWORD).transpose()?;
    let token = line(files, TOKEN).transpose()?;
    let bearer = BEARER.into_iter().find_map(|name| line(files, name)).transpose()?;
    match (username, password, token, bearer) {
        (_, _, _, Some(token)) => Ok(Credentials::Bearer(token)),
        (username, None, Some(password), None) => {
            Ok(Credentials::Basic { username: username.unwrap_or_else(|| Secret::new(TOKEN_USER)), password })
        }
        (Some(username), Some(password), _, None) => Ok(Credentials::Basic { username, password }),
        (Some(_), None, None, None) => Err(CredentialsError::Half { present: USERNAME, missing: PASSWORD }),
        (None, Some(_), ..) => Err(CredentialsError::Half { present: PASSWORD, missing: USERNAME }),
        (None, None, None, None) if has_ca => Ok(Credentials::Anonymous),
        (None, None, None, None) if PRIVATE_KEY.iter().any(|name| files.contains_key(*name)) => {
            Err(CredentialsError::KeyForHttp(url.scheme().name()))
        }
        (None, None, None, None) => Err(CredentialsError::Nothing),
    }
}

fn ssh(files: &SecretFiles, url: &RemoteUrl) -> Result<Credentials, CredentialsError> {
    let key = PRIVATE_KEY.into_iter().find_map(|name| text(files, name).map(|text| private_key(name, &text?)));
    let private_key = key.ok_or(CredentialsError::NoKey)??;
    let known_hosts = text(files, KNOWN_HOSTS).transpose()?;
    let known_hosts = known_hosts.filter(|text| !text.trim().is_empty());
    let known_hosts = known_hosts.ok_or_else(|| CredentialsError::NoKnownHosts { host: url.host().to_owned() })?;
    let passphrase = PASSPHRASE.into_iter().find_map(|name| line(files, name)).transpose()?;
    Ok(Credentials::Ssh { private_key, passphrase, known_hosts })
}

/// OpenSSH wants a newline at the end, and no carriage returns.
fn private_key(name: &'static str, text: &str) -> Result<Secret, CredentialsError> {
    let text = text.replace('\r', "");
    let is_key = text.trim_start().starts_with("-----BEGIN");
    if is_key { Ok(Secret(format!("{}\n", text.trim()))) } else { Err(CredentialsError::Key(name)) }
}

fn certificate(name: &'static str, text: &str) -> Result<String, CredentialsError> {
    let is_certificate = text.contains("-----BEGIN CERTIFICATE-----");
    if is_certificate { Ok(text.to_owned()) } else { Err(CredentialsError::Certificate(name)) }
}

fn text(files: &SecretFiles, name: &'static str) -> Option<Result<String, CredentialsError>> {
    let text = String::from_utf8(files.get(name)?.clone());
    Some(text.ok().filter(|text| !text.contains('\0')).ok_or(CredentialsError::Text(name)))
}

/// Editors end a file with a newline; a value has none.
fn line(files: &SecretFiles, name: &'static str) -> Option<Result<Secret, CredentialsError>> {
    Some(text(files, name)?.and_then(|text| match text.trim_end_matches(['\r', '\n']) {
        "" => Err(CredentialsError::Empty(name)),
        line if line.contains(char::is_control) => Err(CredentialsError::Line(name)),
        line => Ok(Secret::new(line)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_url::PlainHttp;

    const HTTPS: &str = "https://example.com/a.git";
    const SSH: &str = "git@example.com:a.git";
    const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\r\nabc\r\n-----END OPENSSH PRIVATE KEY-----";

    fn read(url: &str, files: &[(&str, &str)]) -> Result<Access, CredentialsError> {
        let files: SecretFiles = files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        Access::read(Some(&files), &RemoteUrl::parse(url, PlainHttp::LoopbackOnly).unwrap())
    }

    fn basic(username: &str, password: &str) -> Credentials {
        Credentials::Basic { username: Secret::new(username), password: Secret::new(password) }
    }

    #[test]
    fn logins() {
        for (files, expected) in [
            (&[("username", "ada\n"), ("password", "p w\n")][..], basic("ada", "p w")),
            (&[("token", "t\r\n")], basic(TOKEN_USER, "t")),
            (&[("username", "ada"), ("token", "t")], basic("ada", "t")),
            (&[("bearer", "t")], Credentials::Bearer(Secret::new("t"))),
            (&[("bearerToken", "t"), ("username", "ada")], Credentials::Bearer(Secret::new("t"))),
            (&[("ca.crt", "-----BEGIN CERTIFICATE-----\n")], Credentials::Anonymous),
        ] {
            assert_eq!(read(HTTPS, files).unwrap().credentials, expected, "{files:?}");
        }
        let url = RemoteUrl::parse(HTTPS, PlainHttp::LoopbackOnly).unwrap();
        assert_eq!(Access::read(None, &url).unwrap(), Access::anonymous());
    }

    #[test]
    fn keys() {
        for (files, has_passphrase) in [
            (&[("ssh-privatekey", KEY), ("known_hosts", "example.com ssh-ed25519 AAAA")][..], false),
            (&[("identity", KEY), ("known_hosts", "h"), ("password", "p")], true),
            (&[("identity", KEY), ("known_hosts", "h"), ("ssh-password", "p")], true),
        ] {
            let Credentials::Ssh { private_key, passphrase, .. } = read(SSH, files).unwrap().credentials else {
                panic!("{files:?}");
            };
            assert!(private_key.reveal().ends_with("-----\n") && !private_key.reveal().contains('\r'));
            assert_eq!(passphrase.is_some(), has_passphrase);
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_its_content_is_not() {
        for (url, files, expected) in [
            (HTTPS, &[("username", "hidden")][..], "`username` is there, and `password` is not"),
            (HTTPS, &[("password", "hidden")], "`password` is there, and `username` is not"),
            (HTTPS, &[("token", "hidden\nhidden")], "`token` is not text on one line"),
            (HTTPS, &[("token", "\n")], "`token` is empty"),
            (HTTPS, &[("ca.crt", "hidden")], "`ca.crt` holds no certificate"),
            (HTTPS, &[("ssh-privatekey", KEY)], "holds an SSH key, and the address begins with https"),
            (HTTPS, &[("passwd", "hidden")], "none of its files is known"),
            (SSH, &[("known_hosts", "h")], "there is no `ssh-privatekey`"),
            (SSH, &[("identity", "hidden"), ("known_hosts", "h")], "`identity` is not a private key"),
            (SSH, &[("identity", KEY)], "add the output of `ssh-keyscan example.com`"),
        ] {
            let error = read(url, files).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hidden"), "{files:?}: {error}");
        }
        let shown = format!("{:?}", read(HTTPS, &[("token", "hidden")]).unwrap());
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
