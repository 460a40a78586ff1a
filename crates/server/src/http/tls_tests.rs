//! Handshakes with certificates made for the test.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Limits, Listen, Listener, Plaintext, Shutdown, TlsFiles, serve};
use crate::metrics::Metrics;

/// Writes a new certificate for `localhost`.
fn write_certificate(directory: &Path) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles { cert: directory.join("cert.pem"), key: directory.join("key.pem"), ca: None };
    fs::write(&files.cert, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (files, made.cert.der().clone())
}

async fn handshake(
    listener: &str,
    trusted: &CertificateDer<'static>,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(listener).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

async fn ask(mut stream: TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn listen(files: &TlsFiles) -> Listener {
    // Every address may be served with TLS.
    let address = "0.0.0.0:0".parse().unwrap();
    Listener::bind(&Listen { address, tls: Some(files.clone()), plaintext: Plaintext::LoopbackOnly }).unwrap()
}

fn start(listener: Listener, limits: Limits) -> String {
    let address = format!("127.0.0.1:{}", listener.address().port());
    let router = Router::new().route("/", get(async || "hello"));
    tokio::spawn(serve(listener, router, limits, Shutdown::default(), Arc::new(Metrics::default())));
    address
}

#[tokio::test]
async fn serves_over_tls_and_agrees_on_http_2() {
    let directory = TempDir::new().unwrap();
    let (files, cert) = write_certificate(directory.path());
    let listener = listen(&files);
    assert!(listener.url().starts_with("https://"));
    let address = start(listener, Limits::default());
    let answer = ask(handshake(&address, &cert, &["http/1.1"]).await.unwrap()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    let stream = handshake(&address, &cert, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (_, stranger) = write_certificate(TempDir::new().unwrap().path());
    assert!(handshake(&address, &stranger, &[]).await.is_err(), "the client checks the certificate");
}

#[tokio::test]
async fn plain_http_on_a_tls_port_and_silence_are_let_go() {
    let directory = TempDir::new().unwrap();
    let (files, _) = write_certificate(directory.path());
    let limits = Limits { header_read_timeout: std::time::Duration::from_millis(60), ..Limits::default() };
    let address = start(listen(&files), limits);
    for sent in ["GET / HTTP/1.1\r\n\r\n", ""] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_full_server_says_so_in_http_1() {
    let directory = TempDir::new().unwrap();
    let (files, cert) = write_certificate(directory.path());
    let address = start(listen(&files), Limits { connections_max: 1, ..Limits::default() });
    let _first = handshake(&address, &cert, &["h2"]).await.unwrap();
    let answer = ask(handshake(&address, &cert, &["h2", "http/1.1"]).await.unwrap()).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}
