//! It restarts, forgets on request, and leaves nothing behind.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tidegate_testkit::cluster::{ADMIN, Cluster, Options};

/// Set in the process that is to be killed while it has a control plane.
const VICTIM: &str = "TIDEGATE_TEST_VICTIM";

#[test]
fn a_restart_keeps_objects_and_compaction_expires_old_watches() {
    let mut cluster = Cluster::start(Options::default());
    cluster.admin(&["create", "configmap", "before"]);
    let version = cluster.admin(&["get", "configmap", "before", "-o", "jsonpath={.metadata.resourceVersion}"]);
    cluster.admin(&["create", "configmap", "after"]);
    let watch = format!("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={version}");
    // Each look ends after a second, which may be too soon for a busy machine.
    wait_for(|| cluster.admin(&["get", "--raw", &watch]).contains("\"after\"").then_some(()));
    cluster.compact();
    cluster.restart_apiserver();
    assert!(cluster.admin(&["get", "configmaps", "-o", "name"]).contains("configmap/before"));
    let expired = cluster.kubectl(ADMIN, &["get", "--raw", &watch], "");
    let told = format!("{expired:?}");
    assert!(told.contains("410") || told.contains("Expired") || told.contains("too old"), "{told}");
}

#[test]
fn a_dropped_control_plane_is_gone() {
    let cluster = Cluster::start(Options::default());
    let (pids, folder) = (cluster.pids(), cluster.folder().to_owned());
    assert!(pids.iter().all(|pid| is_running(*pid)));
    drop(cluster);
    assert!(!pids.iter().any(|pid| is_running(*pid)));
    assert!(!folder.exists());
}

/// The victim starts a control plane and says so; it is killed, and nothing
/// of what it started may stay.
#[test]
fn a_killed_test_leaves_nothing() {
    if std::env::var_os(VICTIM).is_some() {
        let cluster = Cluster::start(Options::default());
        let pids: Vec<String> = cluster.pids().iter().map(ToString::to_string).collect();
        let file = PathBuf::from(std::env::var_os(VICTIM).unwrap());
        std::fs::write(file.with_extension("new"), format!("{} {}", cluster.folder().display(), pids.join(" ")))
            .unwrap();
        std::fs::rename(file.with_extension("new"), file).unwrap();
        loop {
            std::thread::park();
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("started");
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "lifetime::a_killed_test_leaves_nothing"]).env(VICTIM, &file);
    let mut victim = victim.stdout(Stdio::null()).spawn().unwrap();
    let started = wait_for(|| {
        assert!(victim.try_wait().unwrap().is_none(), "the victim ended by itself");
        std::fs::read_to_string(&file).ok()
    });
    let (folder, pids) = started.split_once(' ').unwrap();
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_running(*pid)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_for(|| (!pids.iter().any(|pid| is_running(*pid))).then_some(()));
    wait_for(|| (!PathBuf::from(folder).exists()).then_some(()));
}

fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

fn wait_for<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "waited too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}
