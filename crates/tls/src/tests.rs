//! Handshakes with certificates made for the test.

use std::path::Path;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

use super::*;

/// Writes a new certificate for `localhost`.
fn write_certificate(directory: &Path) -> (CertificateFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = CertificateFiles { cert: directory.join("cert.pem"), key: directory.join("key.pem"), ca: None };
    fs::write(&files.cert, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (files, made.cert.der().clone())
}

/// Whether a client that trusts this certificate alone is content.
async fn is_trusted(certificates: &Arc<Certificates>, trusted: &CertificateDer<'static>) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(pem::provider()).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let (client, server) = tokio::io::duplex(64 << 10);
    let acceptor = certificates.acceptor(&["h2"]).unwrap();
    let accepted = tokio::spawn(async move { acceptor.accept(server).await.is_ok() });
    let name = ServerName::try_from("localhost").unwrap();
    let is_content = TlsConnector::from(Arc::new(config)).connect(name, client).await.is_ok();
    let _ = accepted.await;
    is_content
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_and_a_broken_one_is_not() {
    let directory = TempDir::new().unwrap();
    let (files, old) = write_certificate(directory.path());
    let certificates = Certificates::load(files.clone()).unwrap();
    let (_, new) = write_certificate(directory.path());
    assert!(is_trusted(&certificates, &old).await, "not yet");
    certificates.reload().unwrap();
    certificates.renewed().await;
    assert!(is_trusted(&certificates, &new).await && !is_trusted(&certificates, &old).await);
    assert_eq!(*certificates.ca_pem(), *fs::read_to_string(&files.cert).unwrap());
    fs::write(&files.cert, "nonsense").unwrap();
    assert!(certificates.reload().is_err());
    assert!(is_trusted(&certificates, &new).await, "what works stays");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_changes_is_noticed_and_so_is_who_asks() {
    let directory = TempDir::new().unwrap();
    let (files, _) = write_certificate(directory.path());
    let ca = directory.path().join("ca.pem");
    fs::write(&ca, "one").unwrap();
    let certificates = Certificates::load(CertificateFiles { ca: Some(ca.clone()), ..files }).unwrap();
    assert_eq!(&*certificates.ca_pem(), "one");
    let asked = Arc::new(Notify::new());
    let fresh = tokio::spawn({
        let (certificates, asked) = (certificates.clone(), asked.clone());
        async move { certificates.keep_fresh(&asked).await }
    });
    // Once it waits: what it saw at first is the old file.
    tokio::task::yield_now().await;
    fs::write(&ca, "another").unwrap();
    certificates.renewed().await;
    assert_eq!(&*certificates.ca_pem(), "another");
    asked.notify_one();
    certificates.renewed().await;
    fresh.abort();
}

#[tokio::test]
async fn one_from_memory() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificates = Certificates::from_pem(&made.cert.pem(), &made.signing_key.serialize_pem()).unwrap();
    assert!(is_trusted(&certificates, made.cert.der()).await);
    assert_eq!(*certificates.ca_pem(), *made.cert.pem());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (directory, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (files, _) = write_certificate(directory.path());
    let (stranger, _) = write_certificate(other.path());
    let missing = directory.path().join("missing.pem");
    let empty = directory.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    for (cert, key, ca, named) in [
        (&missing, &files.key, None, "missing.pem"),
        (&files.cert, &missing, None, "missing.pem"),
        (&files.cert, &files.key, Some(&missing), "missing.pem"),
        (&empty, &files.key, None, "no certificate"),
        (&files.cert, &empty, None, "no private key"),
        (&files.key, &files.key, None, "no certificate"),
        (&files.cert, &stranger.key, None, "do not belong together"),
    ] {
        let files = CertificateFiles { cert: cert.clone(), key: key.clone(), ca: ca.cloned() };
        let error = Certificates::load(files).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
