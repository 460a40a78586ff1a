//! Outside of the cluster, as the quick start has it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB};
use tidegate_testkit::git_http::{GitHttp, Mode, PASSWORD, USERNAME};
use tidegate_testkit::place::{Place, wait};

use crate::rig::plane;

const ALICE_IS: &str = "alice <alice@users.noreply.cluster.local>";
/// Nothing is written unless it has to be.
const PATIENT: &[&str] = &["--git-batch-silence=1h", "--git-batch-max-wait-sec=3600"];
/// One that ends without giving its lease back leaves nobody waiting for it.
const ALONE: &[&str] = &["--leader-elect=false"];
/// A page of the reverser's docs.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reverse").join(name)).unwrap()
}

/// The names and kinds that docs/reverse/metrics.md has.
fn documented_metrics() -> BTreeSet<(String, String)> {
    let text = page("metrics.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(name, rest)| {
        let kind = rest.split([',', ' ']).next().unwrap_or_default();
        (name.trim_end_matches("_total").to_owned(), kind.to_owned())
    })
    .collect()
}

/// The same of an answer of `/metrics`.
fn told_metrics(text: &str) -> BTreeSet<(String, String)> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE gitopsreverser_")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

/// The manifests of docs/reverse/README.md, with a Git server of ours.
fn quick_start(url: &str) -> String {
    let text = page("README.md");
    let (_, rest) = text.split_once("```yaml\n").unwrap();
    let (manifests, _) = rest.split_once("```").unwrap();
    let manifests = manifests.replace("https://git.example.com/shop/cluster.git", url);
    manifests.replace("username: robot, password: …", &format!("username: {USERNAME}, password: {PASSWORD}"))
}

#[test]
fn the_quick_start_word_for_word() {
    let plane = plane();
    let operator = plane.operator("quick").ready();
    assert_eq!(operator.get("/healthz").unwrap(), (200, "ok\n".to_owned()));
    // Another one waits for its lease: it lives, and it is not ready.
    let second = plane.operator("quick-second").start();
    let waits = |(status, why): &(u16, String)| *status == 503 && why.starts_with("another replica works: ");
    wait("the second one's turn, which is not yet", || second.get("/readyz").filter(waits));
    assert_eq!(second.get("/healthz").unwrap(), (200, "ok\n".to_owned()));
    second.stop();
    plane.cluster.admin(&["create", "namespace", "shop"]);
    let (cluster, git, repository) = (&plane.cluster, &plane.git, plane.git.create("shop/cluster.git"));
    let place = Place { cluster, git, namespace: "shop".into(), repository };
    let manifests = quick_start(&git.url("shop/cluster.git"));
    cluster.kubectl(ADMIN, &["apply", "-f", "-"], &manifests).unwrap_or_else(|complaint| panic!("{complaint}"));
    place.wait_ready(&["maps"]);
    place.wait_reason("gitrepoconfig", "mirror", "BranchFound");
    let table = place.kubectl_as(ADMIN, &["get", "gitrepoconfigs,gitdestinations,watchrules", "--no-headers"]);
    for line in table.lines().filter(|line| !line.is_empty()) {
        assert!(line.contains("True"), "not ready: {table}");
    }
    place.apply_as(ALICE, &place.config_map("app", "one"));
    let path = "clusters/prod/v1/configmaps/shop/app.yaml";
    place.wait_file(path, |text| text.contains("value: one"));
    let commit = place.commits(path).remove(0);
    assert_eq!((commit.author.as_str(), commit.committer.as_str()), (ALICE_IS, "tidegate-reverser"));
    assert_eq!(commit.subject, "[CREATE] v1/configmaps/shop/app by user/alice");
    let said = ["create", "configmap", "greeting", "--from-literal=text=hello"];
    place.kubectl_as(ALICE, &said);
    let file = place.wait_file("clusters/prod/v1/configmaps/shop/greeting.yaml", |_| true);
    assert!(page("README.md").contains(&format!("```\n{file}kubernetes-admin: [CREATE]")), "{file}");
    // Git may have it a moment before the operator is told so.
    wait("lag", || operator.metric("gitopsreverser_lag_seconds_count").filter(|count| *count > 0.0));
    let (_, metrics) = operator.get("/metrics").unwrap();
    assert_eq!(told_metrics(&metrics), documented_metrics());
    operator.stop();
    // The next one need not wait for a lease to expire, misses no clones, and
    // has nothing to say.
    let commits = place.commits("clusters").len();
    let start = plane.operator("quick");
    fs::remove_dir_all(&start.work_dir).unwrap();
    let operator = start.ready();
    place.apply_as(BOB, &place.config_map("next", "1"));
    place.wait_file("clusters/prod/v1/configmaps/shop/next.yaml", |_| true);
    assert_eq!(place.commits("clusters").len(), commits + 1);
    operator.stop();
    plane.cluster.admin(&["delete", "namespace", "shop", "--wait=false"]);
}

/// What rules without resources mean, what no rule can select, and whose
/// repositories they may use.
#[test]
fn flags_that_bound_what_is_mirrored() {
    let plane = plane();
    let place = plane.place("bounds");
    place.rule("all", "live", json!({}));
    let foreign = plane.place("bounds-foreign");
    let to = json!({"name": "live", "namespace": place.namespace});
    foreign.configure("WatchRule", "far", json!({"destinationRef": to, "rules": [{"resources": ["secrets"]}]}));
    let flags = ["--watch-all", "--discovery-exclude=configmaps", "--no-cross-namespace-refs"];
    let operator = plane.operator("bounds").with(&flags).ready();
    foreign.wait_reason("watchrule", "far", "CrossNamespaceRefused");
    place.wait_ready(&["all"]);
    place.apply_as(ALICE, &place.config_map("excluded", "1"));
    // Of no preset.
    let metadata = json!({"name": "pod", "namespace": place.namespace});
    let template = json!({"spec": {"containers": [{"name": "a", "image": "a"}]}});
    place.apply_as(
        ALICE,
        &json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}),
    );
    place.wait_file(&format!("live/v1/podtemplates/{}/pod.yaml", place.namespace), |_| true);
    assert_eq!(place.file(&place.config_map_path("excluded")), None);
    place.kubectl_as(ADMIN, &["delete", "watchrules", "--all"]);
    operator.stop();
}

#[test]
fn a_signal_writes_what_waits_and_a_second_one_ends_at_once() {
    let plane = plane();
    // The branch of the server that is away is the first in order.
    let (away, place) = (GitHttp::start(), plane.place("drain-b"));
    let other = Place::create(&plane.cluster, &away, "drain-a");
    for place in [&place, &other] {
        place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    }
    let mut operator = plane.operator("drain").with(PATIENT).with(ALONE).ready();
    for place in [&place, &other] {
        place.wait_ready(&["maps"]);
        place.apply_as(ALICE, &place.config_map("waits", "1"));
    }
    wait("both changes", || operator.metric("gitopsreverser_enrich_hits_total").filter(|hits| *hits >= 2.0));
    assert!(place.files().is_empty() && other.files().is_empty());
    away.set(Mode::Down);
    operator.process.signal(Signal::TERM);
    place.wait_file(&place.config_map_path("waits"), |_| true);
    assert_eq!(place.commits("live")[0].author, ALICE_IS);
    operator.process.err.until("ConnectionFailed");
    operator.process.signal(Signal::TERM);
    assert_eq!(operator.process.wait().code(), Some(1));
    // The next start finds what was not written, and whose it was is lost.
    away.set(Mode::Up);
    let operator = plane.operator("drain").with(ALONE).ready();
    other.wait_file(&other.config_map_path("waits"), |_| true);
    assert!(other.commits("live")[0].author.starts_with("unknown "));
    // Its server ends with this test: no later operator should wait for it.
    other.kubectl_as(ADMIN, &["delete", "watchrules,gitdestinations", "--all"]);
    operator.stop();
}
