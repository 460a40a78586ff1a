//! The control plane's authority, its serving certificate, and the key that
//! signs service-account tokens.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// Names under which clients reach the API server.
const SERVER_NAMES: [&str; 5] =
    ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

pub(super) struct Certificates {
    pub ca_pem: String,
    pub ca: PathBuf,
    pub server: PathBuf,
    pub server_key: PathBuf,
    pub accounts_key: PathBuf,
    pub accounts_public_key: PathBuf,
}

impl Certificates {
    pub fn create(folder: &Path) -> Self {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("a certificate can be written");
            path
        };
        let ca_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_pem = params.self_signed(&ca_key).expect("an authority").pem();
        let issuer = Issuer::new(params, ca_key);
        let key = KeyPair::generate().expect("a key");
        let names = SERVER_NAMES.map(str::to_owned).to_vec();
        let server =
            CertificateParams::new(names).expect("parameters").signed_by(&key, &issuer).expect("a certificate");
        let accounts = KeyPair::generate().expect("a key");
        Self {
            ca: write("ca.crt", &ca_pem),
            server: write("server.crt", &server.pem()),
            server_key: write("server.key", &key.serialize_pem()),
            accounts_key: write("accounts.key", &accounts.serialize_pem()),
            accounts_public_key: write("accounts.pub", &accounts.public_key_pem()),
            ca_pem,
        }
    }
}
