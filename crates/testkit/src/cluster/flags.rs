//! How the programs of a control plane are called.

use std::path::Path;

use super::Options;
use super::certificates::Certificates;

pub(super) fn etcd(client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    vec![
        "--name=default".into(),
        "--data-dir=etcd".into(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nothing has to outlive the machine.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

pub(super) fn apiserver(port: u16, etcd: u16, certificates: &Certificates, options: &Options) -> Vec<String> {
    let path = |path: &Path| path.display().to_string();
    let mut flags = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", path(&certificates.server)),
        format!("--tls-private-key-file={}", path(&certificates.server_key)),
        format!("--client-ca-file={}", path(&certificates.ca)),
        "--token-auth-file=tokens.csv".into(),
        "--authorization-mode=RBAC".into(),
        "--anonymous-auth=false".into(),
        "--allow-privileged=true".into(),
        "--service-cluster-ip-range=10.0.0.0/16".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", path(&certificates.accounts_public_key)),
        format!("--service-account-signing-key-file={}", path(&certificates.accounts_key)),
        "--endpoint-reconciler-type=none".into(),
    ];
    if !options.controller_manager {
        // Nobody makes the default service accounts that it asks for.
        flags.push("--disable-admission-plugins=ServiceAccount".into());
    }
    flags.extend(options.apiserver_flags.iter().cloned());
    flags
}

pub(super) fn controller_manager(kubeconfig: &Path, certificates: &Certificates) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--service-account-private-key-file={}", certificates.accounts_key.display()),
        format!("--root-ca-file={}", certificates.ca.display()),
        // Each controller writes under its own name, as in a real cluster.
        "--use-service-account-credentials=true".into(),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
    ]
}
