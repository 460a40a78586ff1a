//! Secrets, skipped and encrypted.

use std::sync::Arc;

use age::secrecy::ExposeSecret;
use tidegate_model::mirror::ResourceKey;
use tidegate_model::yaml;
use tidegate_reverser::branch::{Branch, Limits, Scope, SkipReason, Ticket};
use tidegate_reverser::change::{Change, Listed, State, What};
use tidegate_reverser::secrets::{SecretPolicy, Sops};
use tidegate_testkit::programs::sops_decrypt;

use crate::rig::{PATIENCE, Rig, change, destination, id, pushed, version};

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: default\ndata:\n  password: aHVudGVyMg==\ntype: Opaque\n";

fn seed(branch: &Branch, yaml: &str, resource_version: &str) -> Ticket {
    let key = ResourceKey::new("", "v1", "secrets", Some("default"), "s");
    let state = State { version: version(resource_version), yaml: yaml.to_owned().into() };
    branch.seed(&id(), Scope::Whole, [Listed::new(key, state)])
}

#[tokio::test]
async fn without_encryption_a_secret_is_skipped_with_a_reason() {
    let rig = Rig::new();
    rig.foreign("echo 1 > a");
    let branch = rig.branch();
    pushed(&branch, seed(&branch, SECRET, "1")).await;
    assert_eq!(rig.names(), "a");
    let status = branch.status().borrow().destinations[&id()].clone();
    let skipped: Vec<_> = status.skipped.values().map(|skipped| (skipped.key.to_string(), skipped.reason)).collect();
    assert_eq!(skipped, [("v1/secrets/default/s".to_owned(), SkipReason::SecretNotEncrypted)]);
    branch.set_destination(&id(), destination(SecretPolicy::Plaintext));
    pushed(&branch, seed(&branch, SECRET, "1")).await;
    assert!(branch.status().borrow().destinations[&id()].skipped.is_empty());
    assert!(rig.files()["live/v1/secrets/default/s.yaml"].contains("aHVudGVyMg=="));
}

#[tokio::test]
async fn an_encrypted_secret_is_committed_once() {
    let rig = Rig::new();
    let recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    let policy = SecretPolicy::Encrypt(Arc::new(Sops::new(&[recipient]).unwrap()));
    let branch = rig.branch_with(rig.limits(), destination(policy.clone()));
    pushed(&branch, seed(&branch, SECRET, "1")).await;
    pushed(&branch, seed(&branch, SECRET, "2")).await;
    branch.stop().await;
    assert_eq!(rig.log().len(), 1);
    let file = rig.files()["live/v1/secrets/default/s.yaml"].clone();
    assert!(file.contains("ENC[AES256_GCM") && !file.contains("aHVudGVyMg"), "{file}");
    let branch = rig.branch_with(rig.limits(), destination(policy));
    pushed(&branch, seed(&branch, SECRET, "1")).await;
    assert_eq!(rig.log().len(), 1, "a new process recognizes the version");
    pushed(&branch, seed(&branch, &SECRET.replace("aHVu", "aHVx"), "3")).await;
    assert_eq!(rig.log().len(), 2);
}

/// Two states of one Secret in one batch: the second is compared with the first,
/// which nobody has saved yet.
#[tokio::test]
async fn a_secret_that_changes_twice_in_a_batch() {
    let (rig, identity) = (Rig::new(), age::x25519::Identity::generate());
    let policy = SecretPolicy::Encrypt(Arc::new(Sops::new(&[identity.to_public().to_string()]).unwrap()));
    let limits = Limits { silence: PATIENCE, wait_max: PATIENCE, ..rig.limits() };
    let branch = rig.branch_with(limits, destination(policy));
    let second = SECRET.replace("aHVu", "aHVx");
    for (yaml, resource_version, author) in [(SECRET, "1", "alice"), (&second, "2", "bob"), (&second, "3", "alice")] {
        let key = ResourceKey::new("", "v1", "secrets", Some("default"), "s");
        let what = What::Put(State { version: version(resource_version), yaml: yaml.to_owned().into() });
        branch.submit(&id(), Change { key, what, ..change("s", author, "1") });
    }
    pushed(&branch, branch.flush()).await;
    assert_eq!(rig.log().len(), 2, "{:?}", rig.log());
    let file = &rig.files()["live/v1/secrets/default/s.yaml"];
    let decrypted = sops_decrypt(identity.to_string().expose_secret(), file);
    assert_eq!(yaml::parse(&decrypted), yaml::parse(&second), "{decrypted}");
}

/// The judge is the `sops` program, with the recipient's key.
#[tokio::test]
async fn the_sops_program_decrypts_the_file() {
    let (rig, identity) = (Rig::new(), age::x25519::Identity::generate());
    let recipients = [identity.to_public().to_string(), age::x25519::Identity::generate().to_public().to_string()];
    let policy = SecretPolicy::Encrypt(Arc::new(Sops::new(&recipients).unwrap()));
    let branch = rig.branch_with(rig.limits(), destination(policy));
    let secret = SECRET.replace(
        "type: Opaque",
        "  empty: \"\"\n  long: bGluZQo=\nimmutable: true\nmetadata2:\n  number: 5\n  flag: false\ntype: Opaque",
    );
    pushed(&branch, seed(&branch, &secret, "1")).await;
    let file = &rig.files()["live/v1/secrets/default/s.yaml"];
    let decrypted = sops_decrypt(identity.to_string().expose_secret(), file);
    assert_eq!(yaml::parse(&decrypted), yaml::parse(&secret), "{decrypted}");
}
