//! Why a server could not be asked, and what to do about it.

use std::error::Error;
use std::io;

use reqwest::Url;
use rustls::CertificateError;

use crate::ClientError;

pub fn explain(url: &Url, error: &reqwest::Error) -> ClientError {
    let reason = deepest(error);
    let (reason, remedy) = match tls_error(error) {
        Some(error) => of_tls(error, url),
        None if error.is_timeout() && !error.is_connect() => {
            (reason.to_string(), "see whether it is busy, and try again".to_owned())
        }
        None if error.is_connect() || !error.is_request() => {
            (reason.to_string(), "start it with `tidegate serve`, or name another with --server".to_owned())
        }
        None if answers_otherwise(error) && url.scheme() == "http" => {
            (reason.to_string(), format!("if it speaks TLS, write --server {}", with_scheme(url, "https")))
        }
        None if answers_otherwise(error) => (reason.to_string(), "name another with --server".to_owned()),
        None => {
            let reason = format!("it closed the connection without an answer ({reason})");
            (reason, "it may be stopping, or have been killed: try again when it is back".to_owned())
        }
    };
    ClientError::Unreachable { url: url.to_string(), reason, remedy }
}

/// Connected, and then something that is no HTTP.
fn answers_otherwise(error: &reqwest::Error) -> bool {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>()).any(hyper::Error::is_parse)
}

fn of_tls(error: &rustls::Error, url: &Url) -> (String, String) {
    let certificate = match error {
        rustls::Error::InvalidCertificate(certificate) => certificate,
        // The first bytes of the answer are no TLS.
        rustls::Error::InvalidMessage(_) => {
            let next = format!("write --server {}", with_scheme(url, "http"));
            return ("it does not speak TLS there".into(), next);
        }
        other => return (other.to_string(), "see the server's log".into()),
    };
    // It has no name of its own in rustls.
    if certificate_text(certificate).contains("CaUsedAsEndEntity") {
        return (
            "its certificate is marked as that of an authority, which a server's must not be".into(),
            "make it with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE …`, or sign it with an \
             authority of yours, and name that with --ca-file"
                .into(),
        );
    }
    let next = match certificate {
        CertificateError::UnknownIssuer => "name the certificates to trust with --ca-file",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "write the name in --server that the certificate is made for"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "renew the server's certificate",
        _ => "give the server another certificate, or name another server with --server",
    };
    (error.to_string(), next.into())
}

fn certificate_text(certificate: &CertificateError) -> String {
    format!("{certificate:?}")
}

fn with_scheme(url: &Url, scheme: &str) -> String {
    let rest = url.as_str().split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    format!("{scheme}://{}", rest.trim_end_matches("/graphql"))
}

fn deepest(error: &dyn Error) -> &dyn Error {
    error.source().map_or(error, deepest)
}

/// An I/O error does not name what it wraps as its source.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    wrapped.and_then(|wrapped| tls_error(wrapped)).or_else(|| tls_error(error.source()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{Client, Options, TokenSource};

    #[test]
    fn a_tls_error_is_found_where_io_hides_it() {
        let inner = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let outer = io::Error::other(io::Error::other(inner.clone()));
        assert_eq!(tls_error(&outer), Some(&inner));
        assert_eq!(tls_error(&io::Error::other("refused")), None);
    }

    /// What a client is told of a server that does `serve` with its connection.
    async fn told(serve: impl AsyncFnOnce(TcpStream)) -> (String, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let client = Client::new(&Options::new(&server, TokenSource::Text("token".into()))).unwrap();
        let serving = async {
            let mut stream = listener.accept().await.unwrap().0;
            // The whole request: what is left unread becomes a reset.
            let mut request = Vec::new();
            while !request.ends_with(b"\"variables\":{}}") {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0);
            }
            serve(stream).await;
        };
        let (answer, ()) = tokio::join!(client.query::<Value>("{}", json!({})), serving);
        match answer {
            Err(ClientError::Unreachable { reason, remedy, .. }) => (reason, remedy),
            other => panic!("it is not there: {other:?}"),
        }
    }

    #[tokio::test]
    async fn a_server_that_goes_away_is_not_one_that_speaks_tls() {
        let reset = async |stream: TcpStream| stream.set_zero_linger().unwrap();
        for (reason, remedy) in [told(async |stream| drop(stream)).await, told(reset).await] {
            assert!(reason.contains("closed the connection without an answer"), "{reason}");
            assert!(remedy.contains("try again") && !remedy.contains("https"), "{remedy}");
        }
        // The alert of a server that wanted a handshake.
        let alert = async |mut stream: TcpStream| stream.write_all(b"\x15\x03\x03\0\x02\x02\x32").await.unwrap();
        let (_, remedy) = told(alert).await;
        assert!(remedy.contains("if it speaks TLS, write --server https://127.0.0.1"), "{remedy}");
    }

    #[test]
    fn each_failure_has_a_remedy() {
        let url = Url::parse("https://tide.example.com:7300/graphql").unwrap();
        let marked =
            CertificateError::Other(rustls::OtherError(std::sync::Arc::new(io::Error::other("CaUsedAsEndEntity"))));
        for (error, expected) in [
            (rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer), "--ca-file"),
            (rustls::Error::InvalidCertificate(CertificateError::NotValidForName), "the name in --server"),
            (rustls::Error::InvalidCertificate(CertificateError::Expired), "renew"),
            (rustls::Error::InvalidCertificate(marked), "CA:FALSE"),
            (
                rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType),
                "write --server http://tide.example.com:7300",
            ),
        ] {
            let (_, next) = of_tls(&error, &url);
            assert!(next.contains(expected), "{error}: {next}");
        }
    }
}
