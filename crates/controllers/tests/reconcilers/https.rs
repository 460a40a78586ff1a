//! Endpoints over HTTPS: who is trusted, and what is said of the others.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tidegate_controllers::hooks::HookOptions;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::hooks::{Server, TIMEOUT, answered, until_failed, world};
use crate::world::{World, condition};

/// An authority, and a certificate of it for one name.
struct Authority {
    pem: String,
    config: Arc<ServerConfig>,
}

impl Authority {
    fn for_name(name: &str) -> Self {
        let mut authority = rcgen::CertificateParams::new([]).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let own = rcgen::CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        Self { pem, config: Arc::new(config) }
    }
}

/// Accepts those who take our certificate; the others have gone.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

async fn endpoint(authority: &Authority) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    Server::serve(TlsListener { listener, acceptor: authority.config.clone().into() }, address)
}

/// The world of [`world`] with the hook at the endpoint over HTTPS.
fn secured(server: &Server, ca_bundle: Option<&str>) -> World {
    let world = world(server, "");
    let bundle = ca_bundle.map(|pem| format!(", caBundle: {pem:?}")).unwrap_or_default();
    let port = server.address.port();
    let plain = format!("{{url: 'http://{}/', timeout: {TIMEOUT}}}", server.address);
    let hook =
        server.hook("").replace(&plain, &format!("{{url: 'https://localhost:{port}/', timeout: {TIMEOUT}{bundle}}}"));
    assert!(hook.contains("https://"), "{hook}");
    world.apply("hook.yaml", &hook);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_of_the_bundle_is_trusted() {
    let authority = Authority::for_name("localhost");
    let server = endpoint(&authority).await;
    let world = secured(&server, Some(&authority.pem));
    let running = world.manage(HookOptions::default());
    world.until("the widget has a status", |world| world.get("Widget", "w").unwrap()["status"]["size"] == 1).await;
    assert_eq!(answered(&world).1, "Answered");
    running.stop().await;
}

/// Neither another authority, nor the system's, nor another name.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_is_trusted() {
    let (authority, other) = (Authority::for_name("localhost"), Authority::for_name("localhost"));
    let elsewhere = Authority::for_name("elsewhere.example.com");
    for (server, bundle, reason) in [
        (&authority, Some(&*other.pem), "invalid peer certificate"),
        (&authority, None, "invalid peer certificate"),
        (&elsewhere, Some(&*elsewhere.pem), "not valid for name"),
    ] {
        let server = endpoint(server).await;
        let world = secured(&server, bundle);
        let running = world.manage(HookOptions::default());
        until_failed(&world, "EndpointUnreachable", reason).await;
        assert_eq!(server.calls(), 0, "nothing of the object is told to a stranger");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_without_a_certificate_is_refused() {
    let server = Server::start().await;
    for bundle in ["nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let world = secured(&server, Some(bundle));
        let running = world.manage(HookOptions::default());
        world.until_ready("ReconcileHook", "sizes", "EndpointNotUsable").await;
        let hook = world.get("ReconcileHook", "sizes").unwrap();
        let message = condition(&hook, "Ready")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("spec.endpoint.caBundle"), "{message}");
        running.stop().await;
    }
}
