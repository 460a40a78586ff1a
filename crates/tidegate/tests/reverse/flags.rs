//! What is wrong with a call is said, and where.

use std::fs;
use std::net::TcpListener;

use tidegate_testkit::cluster::ADMIN;

use crate::process::{Running, said, tidegate};
use crate::rig::plane;

#[test]
fn wrong_flags_are_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("broken"), "clusters: {").unwrap();
    let nobody = "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n\
                  users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n";
    fs::write(directory.path().join("nobody"), nobody).unwrap();
    for (flags, code, word) in [
        ("--kubeconfig missing", 1, "missing"),
        ("--kubeconfig broken", 1, "broken"),
        (
            "--kubeconfig missing",
            1,
            "error: failed to read the kubeconfig missing: No such file or directory (os error 2)\n",
        ),
        (
            "--work-dir w",
            1,
            ".kube/config: No such file or directory (os error 2)) nor the service account of a pod: give --kubeconfig FILE, or set KUBECONFIG\n",
        ),
        ("--kubeconfig nobody --context other", 1, "other"),
        ("--webhook-url http://127.0.0.1:9443", 2, "https://"),
        ("--webhook-url 127.0.0.1:9443", 2, "--webhook-url"),
        ("--webhook-url https://", 2, "--webhook-url"),
        ("--webhook-service reverser", 2, "NAMESPACE/NAME"),
        ("--webhook-service a/b --webhook-url https://a", 2, "--webhook-url"),
        ("--webhook-url https://a --webhook-cert a.pem", 2, "--webhook-key"),
        ("--webhook-timeout-sec 31", 2, "--webhook-timeout-sec"),
        ("--webhook-listen 9443", 2, "--webhook-listen"),
        ("--discovery-exclude a/b", 2, "--discovery-exclude"),
        ("--discovery-refresh soon", 2, "--discovery-refresh"),
        ("--git-batch-max-files 0", 2, "--git-batch-max-files"),
        ("--git-batch-max-bytes-mib=-1", 2, "--git-batch-max-bytes-mib"),
        ("--git-batch-max-wait-sec 0", 2, "--git-batch-max-wait-sec"),
        ("--workers-max-global 0", 2, "--workers-max-global"),
        ("--watch-all perhaps", 2, "--watch-all"),
        ("--log-format loud", 2, "--log-format"),
        ("install", 2, "--print"),
    ] {
        let mut command = tidegate(directory.path());
        command.env("HOME", directory.path()).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
        let said = said(command.arg("reverse").args(flags.split(' ')));
        assert_eq!(said.code, Some(code), "{flags}: {}", said.err);
        assert!(said.err.contains("error") && said.err.contains(word), "{flags}: {}", said.err);
        assert!(!said.err.contains("kube_client"), "said twice: {}", said.err);
    }
}

/// The wrong cluster in Git is worse than none.
#[test]
fn a_context_counts_wherever_the_kubeconfig_is() {
    let directory = tempfile::tempdir().unwrap();
    let two = "apiVersion: v1\nkind: Config\ncurrent-context: a\nusers: [{name: a, user: {}}]\n\
               clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}, {name: b, cluster: {server: 'https://127.0.0.1:2'}}]\n\
               contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: a}}]\n";
    fs::write(directory.path().join("two"), two).unwrap();
    for (flags, word) in [
        ("--work-dir w", "cannot reach the API server https://127.0.0.1:1/: Connection refused"),
        ("--work-dir w --context b", "cannot reach the API server https://127.0.0.1:2/: Connection refused"),
        ("--work-dir w --context c", "error: failed to use the context c of the kubeconfig"),
    ] {
        let mut command = tidegate(directory.path());
        command.env("HOME", directory.path()).env("KUBECONFIG", directory.path().join("two"));
        command.env_remove("KUBERNETES_SERVICE_HOST").args(["reverse", "--health-listen=127.0.0.1:0"]);
        Running::start(command.args(flags.split(' '))).err.until(word);
    }
}

#[test]
fn what_this_machine_refuses_is_named() {
    let plane = plane();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let kubeconfig = plane.cluster.kubeconfig(ADMIN).display().to_string();
    let file = plane.scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    let free = "127.0.0.1:0";
    for (flags, word) in [
        (&["--health-listen", &address, "--work-dir", "w"][..], "--health-listen"),
        (&["--health-listen", free, "--webhook-url=https://a", "--webhook-listen", &address], "--webhook-listen"),
        (&["--health-listen", free, "--work-dir", &file], "--work-dir"),
        (&["--health-listen", free, "--webhook-url=https://a", "--webhook-cert", &file, "--webhook-key", &file], &file),
    ] {
        let mut command = tidegate(plane.scratch.path());
        command.args(["reverse", "--kubeconfig", &kubeconfig]).args(flags);
        if !flags.contains(&"--work-dir") {
            command.args(["--work-dir", "w"]);
        }
        let said = said(&mut command);
        assert_eq!(said.code, Some(1), "{flags:?}: {}", said.err);
        assert!(said.err.contains("error: ") && said.err.contains(word), "{flags:?}: {}", said.err);
    }
}
