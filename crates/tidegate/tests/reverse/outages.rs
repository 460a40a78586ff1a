//! The webhook away, the webhook with another certificate, and no room for the
//! clones.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use tidegate_testkit::cluster::{ALICE, BOB};
use tidegate_testkit::gate::Gate;
use tidegate_testkit::place::{Place, wait};

use crate::people::{LARGE, write_large};
use crate::rig::{Plane, plane};

fn author(place: &Place<'_>, name: &str) -> String {
    let path = place.config_map_path(name);
    place.wait_file(&path, |_| true);
    place.commits(&path)[0].author.clone()
}

#[test]
fn a_webhook_that_cannot_be_reached_costs_names_and_nothing_else() {
    let plane = plane();
    let place = plane.place("webhook");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    let start = plane.operator("webhook");
    let mut gate = Gate::new(start.webhook);
    let operator = start.called_at(gate.port()).with(&["--git-batch-silence=100ms"]).ready();
    place.wait_ready(&["maps"]);
    place.apply_as(ALICE, &place.config_map("before", "1"));
    assert_eq!(author(&place, "before"), "alice <alice@users.noreply.cluster.local>");
    gate.shut();
    place.apply_as(ALICE, &place.config_map("during", "1"));
    place.apply_as(BOB, &place.config_map("before", "2"));
    place.kubectl_as(ALICE, &["create", "configmap", "made", "--from-literal=a=b"]);
    assert_eq!(author(&place, "during"), "unknown <unknown@users.noreply.cluster.local>");
    assert!(author(&place, "made").starts_with("unknown "));
    place.wait_file(&place.config_map_path("before"), |text| text.contains("value: \"2\""));
    // Who is lost; what wrote it is not.
    let trailers = place.trailers("X-ConfigButler-Object");
    for (name, manager) in [("during", "kubectl"), ("made", "kubectl-create")] {
        let of = format!("/{name} uid=");
        let trailer = trailers.iter().find(|line| line.contains(&of)).unwrap();
        assert!(trailer.ends_with(&format!("fieldManager={manager}")), "{trailer}");
    }
    gate.open();
    place.apply_as(BOB, &place.config_map("after", "1"));
    assert_eq!(author(&place, "after"), "bob <bob@users.noreply.cluster.local>");
    operator.stop();
}

/// No room, by a limit on the size of files: everybody may set one, and it fails
/// as a full disk does.
#[test]
fn a_work_dir_without_room_loses_nothing() {
    let plane = plane();
    let place = plane.place("full");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    write_large(&place);
    let start = plane.operator("full").with(&["--git-batch-silence=100ms"]);
    let work_dir = start.work_dir.display().to_string();
    let mut operator = start.ready();
    place.wait_ready(&["maps"]);
    operator.limit_files(Some(0));
    place.apply_as(ALICE, &place.config_map("a", "1"));
    place.apply_as(BOB, &place.config_map("b", "1"));
    // Its list is more than is kept in memory, and the disk takes none of it.
    place.destination("again", "again");
    place.rule("again", "again", json!({"resources": ["configmaps"]}));
    operator.process.err.until("the work directory takes no list");
    for (kind, name) in [("gitdestination", "live"), ("gitrepoconfig", "repo")] {
        let message = place.wait_reason(kind, name, "DiskFull");
        assert!(message.contains(&format!("no room for the clone in {work_dir}")), "{message}");
        assert!(message.contains("make room there, or give --work-dir a larger volume"), "{message}");
    }
    let line = operator.process.err.until("DiskFull");
    assert!(line.contains("WARN") && line.contains(&work_dir), "{line}");
    let full = || operator.metrics("gitopsreverser_push_failures_total", "reason=\"DiskFull\"");
    wait("two attempts", || full().filter(|failures| *failures >= 2.0));
    let waiting = || operator.metric("gitopsreverser_repo_branch_queue_depth");
    let listed = (LARGE + 2) as f64;
    wait("both changes and the list, which wait", || waiting().filter(|depth| *depth >= 2.0 + listed));
    let written = place.files().len();
    assert_eq!(written, LARGE, "nothing since");
    operator.limit_files(None);
    for (name, who) in [("a", "alice"), ("b", "bob")] {
        assert_eq!(author(&place, name), format!("{who} <{who}@users.noreply.cluster.local>"));
    }
    place.wait_reason("gitdestination", "live", "Mirroring");
    wait("the second destination", || (place.files().len() == 2 * (LARGE + 2)).then_some(()));
    operator.stop();
}

/// An authority and a certificate of it for this machine, as PEM files.
fn write_certificate(folder: &Path) -> String {
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(params, ca_key);
    let cert = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    for (name, text) in [("ca.crt", &ca), ("tls.crt", &cert.pem()), ("tls.key", &key.serialize_pem())] {
        fs::write(folder.join(name), text).unwrap();
    }
    ca
}

/// What the API server is told to trust.
fn trusted(plane: &Plane) -> String {
    let path = "jsonpath={.webhooks[0].clientConfig.caBundle}";
    plane.cluster.admin(&["get", "validatingwebhookconfiguration", "tidegate-reverser", "-o", path])
}

#[test]
fn a_renewed_certificate_is_taken_up_and_a_broken_one_is_not() {
    let plane = plane();
    let place = plane.place("certificate");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let files = ["tls.crt", "tls.key", "ca.crt"].map(path);
    let [cert, key, ca] = ["cert", "key", "ca"].map(|name| format!("--webhook-{name}"));
    let flags = [&cert, &files[0], &key, &files[1], &ca, &files[2]].map(String::as_str);
    let mut operator = plane.operator("certificate").with(&flags).ready();
    place.wait_ready(&["maps"]);
    place.apply_as(ALICE, &place.config_map("first", "1"));
    assert!(author(&place, "first").starts_with("alice "));
    let before = trusted(&plane);
    fs::write(&files[0], "no certificate").unwrap();
    operator.process.err.until("the old certificate stays");
    place.apply_as(ALICE, &place.config_map("second", "1"));
    assert!(author(&place, "second").starts_with("alice "));
    write_certificate(folder.path());
    operator.process.err.until("certificate reloaded");
    wait("the new authority", || (trusted(&plane) != before).then_some(()));
    place.apply_as(BOB, &place.config_map("third", "1"));
    assert!(author(&place, "third").starts_with("bob "));
    operator.stop();
}
