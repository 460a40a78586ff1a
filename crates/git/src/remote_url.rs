//! Where a remote repository is: an address that git may be handed.
//!
//! Invariant: it holds no password, names a transport that reaches a host over
//! the network and nothing else, and cannot be read as an option.

use std::fmt;
use std::net::Ipv4Addr;

use url::{Host, Url};

/// Longer ones are nobody's address.
const URL_BYTES_MAX: usize = 2048;
/// Who logs in over SSH if the address does not say: what hosts of Git expect.
const SSH_USER: &str = "git";

/// Whether `http://` may leave this machine: whoever is in between reads the
/// credentials and chooses the objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainHttp {
    LoopbackOnly,
    Allowed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    Https,
    Http,
    Ssh,
}

impl Scheme {
    /// As git calls the transport.
    pub fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlError {
    #[error(
        "the address is empty, longer than {URL_BYTES_MAX} bytes, or has spaces: write it as https://host/path.git or git@host:path.git"
    )]
    Text,
    #[error("`{0}` is not an address of a repository: write it as https://host/path.git or git@host:path.git")]
    Shape(String),
    #[error("`{0}` is not a transport that is spoken here: use https or ssh")]
    Scheme(String),
    #[error("the address contains a password: put it into a secret, and name that in secretRef")]
    Password,
    #[error(
        "http:// to {0} would send everything in the open: use https or ssh, or set `remote.allow_http` in the server's configuration"
    )]
    Plain(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteUrl {
    scheme: Scheme,
    /// What git is handed.
    text: String,
    /// `scheme://host:port`, for settings that must not reach another host.
    origin: String,
    host: String,
}

impl RemoteUrl {
    pub fn parse(text: &str, plain: PlainHttp) -> Result<Self, UrlError> {
        let is_odd = |c: char| c.is_whitespace() || c.is_control();
        if text.is_empty() || text.len() > URL_BYTES_MAX || text.contains(is_odd) {
            return Err(UrlError::Text);
        }
        if text.contains("://") { Self::parse_url(text, plain) } else { Self::parse_scp(text) }
    }

    fn parse_url(text: &str, plain: PlainHttp) -> Result<Self, UrlError> {
        let shape = || UrlError::Shape(text.to_owned());
        let mut url = Url::parse(text).map_err(|_| shape())?;
        let scheme = match url.scheme() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            "ssh" => Scheme::Ssh,
            other => return Err(UrlError::Scheme(other.to_owned())),
        };
        if url.password().is_some() {
            return Err(UrlError::Password);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_good = !is_option(&host) && !is_option(url.username()) && url.path().len() > 1;
        if host.is_empty() || !is_good || url.query().is_some() || url.fragment().is_some() {
            return Err(shape());
        }
        if scheme == Scheme::Http && plain == PlainHttp::LoopbackOnly && !is_loopback(&url) {
            return Err(UrlError::Plain(host));
        }
        if scheme == Scheme::Ssh && url.username().is_empty() {
            url.set_username(SSH_USER).map_err(|()| shape())?;
        }
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let origin = format!("{}://{host}{port}", scheme.name());
        Ok(Self { scheme, text: url.into(), origin, host })
    }

    /// `user@host:path`, as hosts of Git show it.
    fn parse_scp(text: &str) -> Result<Self, UrlError> {
        let parts = text.split_once('@').and_then(|(user, rest)| Some((user, rest.split_once(':')?)));
        let Some((user, (host, path))) = parts else { return Err(UrlError::Shape(text.to_owned())) };
        let is_plain = |part: &str| {
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]".contains(&byte);
            !part.is_empty() && !is_option(part) && part.bytes().all(is_good)
        };
        // `::` would be a transport of git's own, such as `ext::`.
        if !is_plain(user) || !is_plain(host) || path.is_empty() || path.starts_with(':') || is_option(path) {
            return Err(UrlError::Shape(text.to_owned()));
        }
        Ok(Self { scheme: Scheme::Ssh, text: text.to_owned(), origin: format!("ssh://{host}"), host: host.to_owned() })
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_option(text: &str) -> bool {
    text.starts_with('-')
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => Ipv4Addr::is_loopback(&address),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_repositories() {
        for (text, scheme, origin, given) in [
            ("https://example.com/a/b.git", Scheme::Https, "https://example.com", "https://example.com/a/b.git"),
            ("https://org@example.com:8443/a", Scheme::Https, "https://example.com:8443", ""),
            ("http://127.0.0.1:7300/git/a/b.git", Scheme::Http, "http://127.0.0.1:7300", ""),
            ("http://[::1]:7300/a", Scheme::Http, "http://[::1]:7300", ""),
            ("http://localhost/a", Scheme::Http, "http://localhost", ""),
            ("ssh://git@example.com:2222/a.git", Scheme::Ssh, "ssh://example.com:2222", ""),
            ("ssh://example.com/a.git", Scheme::Ssh, "ssh://example.com", "ssh://git@example.com/a.git"),
            ("git@example.com:a/b.git", Scheme::Ssh, "ssh://example.com", "git@example.com:a/b.git"),
        ] {
            let url = RemoteUrl::parse(text, PlainHttp::LoopbackOnly).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.scheme(), url.origin()), (scheme, origin), "{text}");
            assert_eq!(url.as_str(), if given.is_empty() { text } else { given });
        }
    }

    #[test]
    fn what_git_is_never_handed() {
        for (text, expected) in [
            ("", "is empty"),
            ("https://example.com/a b", "has spaces"),
            ("https://example.com/a\n--upload-pack=x", "has spaces"),
            ("--upload-pack=touch x", "has spaces"),
            ("--upload-pack=x", "is not an address"),
            ("/srv/repo.git", "is not an address"),
            ("../repo.git", "is not an address"),
            ("example.com:repo.git", "is not an address"),
            ("ext::sh@x:y", "is not an address"),
            ("a@ext::sh", "is not an address"),
            ("a@-oProxyCommand=x:y", "is not an address"),
            ("-a@b:c", "is not an address"),
            ("a@b:", "is not an address"),
            ("a@b:-c", "is not an address"),
            ("file:///srv/repo.git", "`file` is not a transport"),
            ("git://example.com/a", "`git` is not a transport"),
            ("ext::sh://x/y", "`ext` is not a transport"),
            ("ssh://-oProxyCommand=x/a", "is not an address"),
            ("ssh://-o@example.com/a", "is not an address"),
            ("https://example.com", "is not an address"),
            ("https://example.com/a?x=1", "is not an address"),
            ("https://me:secret@example.com/a", "contains a password"),
            ("http://example.com/a", "would send everything in the open"),
            ("http://127.0.0.1.example.com/a", "would send everything in the open"),
        ] {
            let error = RemoteUrl::parse(text, PlainHttp::LoopbackOnly).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("secret@"), "{text}: {error}");
        }
        assert!(RemoteUrl::parse("http://example.com/a", PlainHttp::Allowed).is_ok());
    }
}
