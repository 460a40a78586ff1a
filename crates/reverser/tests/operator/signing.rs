//! Commits signed with a key that a Secret holds: missing, there, replaced.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tidegate_testkit::bare;
use tidegate_testkit::cluster::ALICE;
use tidegate_testkit::place::{Place, wait};

use crate::rig::shared;

/// A new key: the private half, and the file that `git` trusts the other by.
fn key(folder: &Path, name: &str) -> (String, String) {
    let path = folder.join(name);
    let mut made = Command::new("ssh-keygen");
    made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path);
    assert!(made.status().unwrap().success());
    let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
    let allowed = folder.join(format!("{name}.allowed"));
    std::fs::write(&allowed, format!("* {public}")).unwrap();
    (std::fs::read_to_string(path).unwrap(), allowed.display().to_string())
}

fn is_signed_by(place: &Place<'_>, allowed: &str) -> bool {
    let setting = format!("gpg.ssh.allowedSignersFile={allowed}");
    let mut verify = bare::command(&place.repository);
    verify.args(["-c", &setting, "verify-commit", "main"]).output().unwrap().status.success()
}

#[test]
fn a_key_is_waited_for_and_may_be_replaced() {
    let (folder, place) = (tempfile::tempdir().unwrap(), shared().place("signing"));
    let (first, first_allowed) = key(folder.path(), "first");
    let (second, second_allowed) = key(folder.path(), "second");
    place.destination_with("live", "live", json!({"commit": {"signing": {"secretRef": {"name": "signing"}}}}));
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.apply_as(ALICE, &place.config_map("a", "1"));
    let message = place.wait_reason("gitdestination", "live", "SecretNotFound");
    assert!(message.contains("/signing does not exist"), "{message}");
    place.secret("signing", json!({"ssh-privatekey": "nonsense"}));
    place.wait_reason("gitdestination", "live", "SecretMalformed");
    assert!(place.files().is_empty(), "nothing unsigned");
    place.secret("signing", json!({"ssh-privatekey": first}));
    place.wait_ready(&["maps"]);
    assert!(place.file(&place.config_map_path("a")).is_some());
    assert!(is_signed_by(&place, &first_allowed) && !is_signed_by(&place, &second_allowed));
    // Nobody says when it was noticed: changes go on until it was.
    place.secret("signing", json!({"ssh-privatekey": second}));
    let mut number = 1;
    wait("a commit of the second key", || {
        number += 1;
        place.apply_as(ALICE, &place.config_map("a", &format!("v{number}")));
        place.wait_file(&place.config_map_path("a"), |text| text.contains(&format!("v{number}\n")));
        is_signed_by(&place, &second_allowed).then_some(())
    });
}
