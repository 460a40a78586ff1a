//! An operator that starts while the API server is away, or is not for it: it
//! waits and says so, or ends and says why.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tidegate_testkit::cluster::ADMIN;
use tidegate_testkit::place::wait;

use crate::process::{said, tidegate};
use crate::rig::{Plane, Reverser, plane};

/// Until it is not ready, for this reason.
fn wait_reason(operator: &Reverser, reason: &str) -> String {
    let told = || operator.get("/readyz").filter(|(status, text)| *status == 503 && text.contains(reason));
    wait(reason, told).1
}

/// The lines about waiting, of an operator that has ended.
fn waits(operator: &mut Reverser) -> Vec<String> {
    let rest = operator.process.err.rest();
    rest.lines().filter(|line| line.contains("waiting: ")).map(str::to_owned).collect()
}

#[test]
fn before_the_api_server_it_waits_and_says_so_once() {
    let mut plane = plane();
    plane.cluster.stop_apiserver();
    let mut operator = plane.operator("early").start();
    let reason = wait_reason(&operator, "Connection refused");
    let address = plane.cluster.url();
    assert!(reason.starts_with(&format!("cannot reach the API server {address}/: ")), "{reason}");
    assert!(reason.contains("check that it runs") && reason.contains("the kubeconfig"), "{reason}");
    assert_eq!(operator.get("/healthz").unwrap().0, 200, "nobody is to restart it");
    // It takes seconds, and many attempts.
    plane.cluster.start_apiserver();
    operator.wait_ready();
    operator.process.err.until("the API server answers");
    operator.process.signal(rustix::process::Signal::TERM);
    assert!(operator.process.wait().success());
    let lines = waits(&mut operator);
    let refused = lines.iter().filter(|line| line.contains("cannot reach the API server"));
    assert_eq!(refused.count(), 1, "{lines:#?}");
    assert!(lines.len() <= 3, "a line for each kind of obstacle: {lines:#?}");
}

/// A kubeconfig of these.
fn kubeconfig(path: &Path, server: &str, ca: &Path, token: &str) -> PathBuf {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: a, cluster: {{server: '{server}', certificate-authority: '{}'}}}}]\n\
         users: [{{name: a, user: {{token: '{token}'}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n",
        ca.display()
    );
    fs::write(path, text).unwrap();
    path.to_owned()
}

fn other_authority(path: &Path) -> &Path {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(path, params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()).unwrap();
    path
}

#[test]
fn what_cannot_heal_ends_it_with_the_remedy() {
    let plane = plane();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("ca.crt");
    let (path, token) = (folder.path().join("kubeconfig"), plane.cluster.token(ADMIN));
    let kubeconfig = kubeconfig(&path, &plane.cluster.url(), other_authority(&other), &token);
    let mut command = tidegate(folder.path());
    command.args(["reverse", "--work-dir=w", "--health-listen=127.0.0.1:0", "--kubeconfig"]).arg(kubeconfig);
    let said = said(&mut command);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let last = said.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains(&plane.cluster.url()), "{last}");
    for word in ["is not trusted", "invalid peer certificate", "correct the address or the certificate-authority"] {
        assert!(last.contains(word), "{last}");
    }
}

/// As by an API server whose authenticator is away for a moment: nothing of a
/// token in a kubeconfig changes, and yet it is refused first and accepted then.
#[test]
fn credentials_that_are_refused_for_a_moment() {
    let plane = plane();
    let token = "abcdef.0123456789abcdef";
    let mut operator = plane.operator("refused").of(plane.cluster.kubeconfig_of_token("early", token)).start();
    let reason = wait_reason(&operator, "does not accept the credentials of the user test in the kubeconfig");
    assert!(reason.contains("401"), "{reason}");
    operator.process.err.until("waiting for 30 s, then ending: the API server ");
    let as_user = "--user=system:bootstrap:abcdef";
    plane.cluster.admin(&["create", "clusterrolebinding", "early", "--clusterrole=cluster-admin", as_user]);
    let [id, secret] = ["token-id=abcdef", "token-secret=0123456789abcdef"].map(|of| format!("--from-literal={of}"));
    let kind = "--type=bootstrap.kubernetes.io/token";
    let usage = "--from-literal=usage-bootstrap-authentication=true";
    let secret = ["create", "secret", "generic", "bootstrap-token-abcdef", "-n=kube-system", kind, &id, &secret, usage];
    plane.cluster.admin(&secret);
    operator.wait_ready();
    operator.stop();
    plane.cluster.admin(&["delete", "secret", "bootstrap-token-abcdef", "-n=kube-system"]);
}

#[test]
fn what_may_heal_is_waited_for() {
    let plane = plane();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(
        &folder.path().join("kubeconfig"),
        "https://nobody.invalid:6443",
        plane.cluster.ca_path(),
        &plane.cluster.token(ADMIN),
    );
    let mut lost = plane.operator("lost").of(kubeconfig).start();
    let reason = wait_reason(&lost, "is not known");
    assert!(reason.contains("https://nobody.invalid:6443/") && reason.contains("DNS"), "{reason}");
    lost.process.signal(rustix::process::Signal::TERM);
    assert!(lost.process.wait().success(), "it waits no longer than it is wanted");
    assert_eq!(waits(&mut lost).len(), 1);
    rights_are_given(&plane);
}

fn rights_are_given(plane: &Plane) {
    let namespace = plane.cluster.namespace("rights");
    let token = plane.cluster.service_account_token(&namespace, "reverser");
    let operator = plane.operator("rights").of(plane.cluster.kubeconfig_of_token("rights", &token)).start();
    let reason = wait_reason(&operator, "does not allow what the operator needs");
    assert!(reason.contains("403") && reason.contains("tidegate reverse install --print"), "{reason}");
    let account = format!("--serviceaccount={namespace}:reverser");
    plane.cluster.admin(&["create", "clusterrolebinding", "rights", "--clusterrole=cluster-admin", &account]);
    operator.wait_ready();
    operator.stop();
}
