//! Secrets: left out, encrypted, or plain because somebody said so.

use age::secrecy::ExposeSecret;
use serde_json::{Value, json};
use tidegate_model::yaml;
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, ALICE};
use tidegate_testkit::place::{Place, wait};
use tidegate_testkit::programs::sops_decrypt;

use crate::rig::shared;

/// `hunter2` and `*******`, as the API has them.
const FIRST: &str = "aHVudGVyMg==";
const SECOND: &str = "KioqKioqKg==";

fn secret(place: &Place<'_>, value: &str) -> Value {
    let metadata = json!({"name": "login", "namespace": place.namespace, "labels": {"team": "a"}});
    let data = json!({"password": value, "user": "YWRh"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data, "type": "Opaque"})
}

fn decrypt(identity: &age::x25519::Identity, file: &str) -> Value {
    let decrypted = sops_decrypt(identity.to_string().expose_secret(), file);
    yaml::parse(&decrypted).unwrap()
}

#[test]
fn secrets_are_skipped_then_encrypted_then_plain() {
    let place = shared().place("secrets");
    let path = format!("live/v1/secrets/{}/login.yaml", place.namespace);
    place.apply_as(ALICE, &secret(&place, FIRST));
    place.rule("all", "live", json!({"resources": ["secrets", "configmaps"]}));
    place.wait_ready(&["all"]);
    // Nothing was said of Secrets: they are left out, and that is told.
    let message = wait("ObjectsSkipped", || {
        let condition = place.condition("gitdestination", "live", "ObjectsSkipped")?;
        condition["message"].as_str().filter(|text| text.contains("2 objects")).map(str::to_owned)
    });
    assert!(message.contains("encryption"), "{message}");
    place.apply_as(ALICE, &place.config_map("beside", "1"));
    place.wait_file(&place.config_map_path("beside"), |_| true);
    assert_eq!(place.file(&path), None);
    // Encrypted, for whoever holds the key.
    let identity = age::x25519::Identity::generate();
    let recipients = [identity.to_public().to_string()];
    let encryption = json!({"provider": "sops-age", "recipients": recipients});
    place.destination_with("live", "live", json!({"encryption": encryption}));
    let file = place.wait_file(&path, |_| true);
    assert_eq!(decrypt(&identity, &file), secret(&place, FIRST), "{file}");
    wait("an end of ObjectsSkipped", || {
        let is_current = place.ready("gitdestination", "live")?["reason"] == "Mirroring";
        let is_told = place.condition("gitdestination", "live", "ObjectsSkipped").is_some();
        (is_current && !is_told).then_some(())
    });
    place.apply_as(ALICE, &secret(&place, SECOND));
    let file = place.wait_file(&path, |text| text != file);
    assert_eq!(decrypt(&identity, &file), secret(&place, SECOND));
    let last = place.commits(&path).pop().unwrap();
    assert_eq!(last.author, "alice <alice@users.noreply.test>");
    let history = bare::git(&place.repository, &["log", "-p", "--all"]);
    assert!(!history.contains(FIRST) && !history.contains(SECOND), "{history}");
    // Noise alone leaves the file as it is, although its Secret has a new version.
    let count = place.commits(&path).len();
    place.kubectl_as(ADMIN, &["annotate", "secret", "login", "kubectl.kubernetes.io/last-applied-configuration=x"]);
    place.apply_as(ALICE, &place.config_map("beside", "2"));
    place.wait_file(&place.config_map_path("beside"), |text| text.contains('2'));
    assert_eq!(place.commits(&path).len(), count);
    // In so many words.
    place.destination_with("live", "live", json!({"secrets": "plaintext"}));
    let file = place.wait_file(&path, |text| text.contains(SECOND));
    assert_eq!(yaml::parse(&file).unwrap(), secret(&place, SECOND));
}

#[test]
fn recipients_that_are_none_are_refused_and_nothing_is_written() {
    let place = shared().place("recipients");
    let encryption = json!({"provider": "sops-age", "recipients": ["age1nonsense"]});
    place.destination_with("live", "live", json!({"encryption": encryption}));
    place.rule("all", "live", json!({"resources": ["secrets"]}));
    let message = place.wait_reason("gitdestination", "live", "EncryptionInvalid");
    assert!(message.contains("age1nonsense"), "{message}");
    assert!(place.files().is_empty());
}
