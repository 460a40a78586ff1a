use super::*;
use crate::change::Version;

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  labels:\n    l: m\ndata:\n  empty: \"\"\n  password: aHVudGVyMg==\nimmutable: true\ntype: Opaque\n";

fn state(yaml: &str, resource_version: &str) -> State {
    let version = Version { uid: "u".into(), resource_version: resource_version.into(), field_manager: None };
    State { version, yaml: yaml.to_owned().into() }
}

fn recipient() -> String {
    age::x25519::Identity::generate().to_public().to_string()
}

fn policy(recipients: &[String]) -> SecretPolicy {
    SecretPolicy::Encrypt(Arc::new(Sops::new(recipients).unwrap()))
}

/// What is written, if anything is.
fn write(policy: &SecretPolicy, memory: &mut SecretMemory, existing: Option<&[u8]>, state: &State) -> Option<Bytes> {
    match policy.write(memory, "p", existing, state).unwrap() {
        Written::Content(content) => Some(content),
        Written::Current => None,
        Written::Refused => panic!("refused"),
    }
}

#[test]
fn nothing_said_is_nothing_written() {
    let mut memory = SecretMemory::default();
    let written = SecretPolicy::Skip.write(&mut memory, "p", None, &state(SECRET, "1")).unwrap();
    assert!(matches!(written, Written::Refused));
    assert_eq!(write(&SecretPolicy::Plaintext, &mut memory, None, &state(SECRET, "1")).unwrap(), SECRET);
}

#[test]
fn values_are_hidden_and_names_are_not() {
    let file = write(&policy(&[recipient(), recipient()]), &mut SecretMemory::default(), None, &state(SECRET, "1"));
    let text = String::from_utf8(file.unwrap().to_vec()).unwrap();
    assert!(text.starts_with("# tidegate uid=u resourceVersion=1 sha256="), "{text}");
    assert!(text.contains("  empty: \"\"\n") && text.contains("  password: ENC[AES256_GCM,data:"), "{text}");
    assert!(!text.contains("aHVudGVyMg") && text.contains("immutable: true"), "{text}");
    assert_eq!(text.matches("BEGIN AGE ENCRYPTED FILE").count(), 2, "{text}");
    assert!(!text.contains("stringData: null"));
}

#[test]
fn an_unchanged_secret_is_recognized() {
    let (policy, mut memory) = (policy(&[recipient()]), SecretMemory::default());
    let file = write(&policy, &mut memory, None, &state(SECRET, "1")).unwrap();
    // The same version, also after a restart.
    assert_eq!(write(&policy, &mut SecretMemory::default(), Some(&file), &state(SECRET, "1")), None);
    // The same content in a later version, while this process lives.
    assert_eq!(write(&policy, &mut memory, Some(&file), &state(SECRET, "2")), None);
    assert!(write(&policy, &mut memory, Some(&file), &state(&SECRET.replace("aHVu", "aHVx"), "3")).is_some());
}

#[test]
fn a_file_that_never_arrived_does_not_count() {
    let (policy, mut memory) = (policy(&[recipient()]), SecretMemory::default());
    let first = write(&policy, &mut memory, None, &state(SECRET, "1")).unwrap();
    let changed = state(&SECRET.replace("aHVu", "aHVx"), "2");
    // Planned, and the push failed: the branch has the first one still.
    assert!(write(&policy, &mut memory, Some(&first), &changed).is_some());
    assert!(write(&policy, &mut memory, Some(&first), &changed).is_some());
}

#[test]
fn what_somebody_edited_is_written_again() {
    let (name, mut memory) = (recipient(), SecretMemory::default());
    let policy_one = policy(std::slice::from_ref(&name));
    let file = write(&policy_one, &mut memory, None, &state(SECRET, "1")).unwrap();
    let edited = String::from_utf8(file.to_vec()).unwrap().replace("l: m", "l: n");
    assert!(write(&policy_one, &mut memory, Some(edited.as_bytes()), &state(SECRET, "1")).is_some());
    assert!(write(&policy_one, &mut memory, Some(SECRET.as_bytes()), &state(SECRET, "1")).is_some());
    // Another reader.
    assert!(write(&policy(&[name, recipient()]), &mut memory, Some(&file), &state(SECRET, "1")).is_some());
}

#[test]
fn recipients() {
    assert_eq!(Sops::new(&["age1nonsense"]).unwrap_err(), RecipientError::Malformed("age1nonsense".into()));
    assert_eq!(Sops::new(&[] as &[&str]).unwrap_err(), RecipientError::None);
}
