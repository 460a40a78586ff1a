//! The way to the remote, over HTTP and SSH, as GitRepoConfig tells it.

use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_testkit::cluster::ALICE;
use tidegate_testkit::git_http::{GitHttp, Mode, PASSWORD, USERNAME};
use tidegate_testkit::place::{Place, wait};
use tidegate_testkit::sshd::{Sshd, generate_key};
use tidegate_testkit::{bare, cluster};

use crate::rig::shared;

const ALICE_IS: &str = "alice <alice@users.noreply.test>";

/// Names another Secret, which acts at once, until the condition has this
/// reason and says `word`; all that it says.
fn with_secret(place: &Place<'_>, url: &str, secret: Option<&str>, reason: &str, word: &str) -> String {
    place.repo_config("repo", url, secret);
    wait(&format!("{reason} with {secret:?}, and `{word}`"), || {
        let ready = place.ready("gitrepoconfig", "repo").filter(|ready| ready["reason"] == reason)?;
        ready["message"].as_str().filter(|message| message.contains(word)).map(str::to_owned)
    })
}

#[test]
fn credentials_over_http() {
    let place = shared().place("http");
    let url = place.url();
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_reason("gitrepoconfig", "repo", "BranchFound");
    place.secret("half", json!({"username": USERNAME}));
    place.secret("wrong", json!({"username": USERNAME, "password": "incorrect horse"}));
    with_secret(&place, &url, Some("nobody"), "SecretNotFound", &format!("{}/nobody", place.namespace));
    with_secret(&place, &url, Some("half"), "SecretMalformed", "`password`");
    let message = with_secret(&place, &url, Some("wrong"), "ConnectionFailed", "secretRef");
    assert!(!message.contains("incorrect horse"), "{message}");
    // A change is there before the credentials are: its author waits, too.
    place.apply_as(ALICE, &place.config_map("late", "1"));
    with_secret(&place, &url, None, "ConnectionFailed", "does not let us in");
    with_secret(&place, &url, Some("git"), "BranchFound", "main");
    place.wait_file(&place.config_map_path("late"), |_| true);
    assert_eq!(place.commits(&place.config_map_path("late"))[0].author, ALICE_IS);
    let events = place.kubectl_as(cluster::ADMIN, &["get", "events", "-o", "jsonpath={.items[*].reason}"]);
    for reason in ["SecretNotFound", "SecretMalformed", "ConnectionFailed", "BranchFound"] {
        assert!(events.contains(reason), "{reason}: {events}");
    }
}

#[test]
fn a_secret_that_is_corrected_is_noticed() {
    let place = shared().place("corrected");
    place.secret("mine", json!({"username": USERNAME, "password": "wrong"}));
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    with_secret(&place, &place.url(), Some("mine"), "ConnectionFailed", "secretRef");
    place.apply_as(ALICE, &place.config_map("late", "1"));
    place.secret("mine", json!({"username": USERNAME, "password": PASSWORD}));
    place.wait_file(&place.config_map_path("late"), |_| true);
    place.wait_reason("gitrepoconfig", "repo", "BranchFound");
}

#[test]
fn credentials_over_ssh() {
    let mut sshd = Sshd::start();
    let mut place = shared().place("ssh");
    place.repository = sshd.create("mirror.git");
    let url = sshd.url("mirror.git");
    let keys = tempfile::tempdir().unwrap();
    for (name, passphrase) in [("stranger", ""), ("locked", "open sesame")] {
        generate_key(&keys.path().join(name), passphrase);
    }
    let key = |name: &str| std::fs::read_to_string(keys.path().join(name)).unwrap();
    sshd.authorize(&key("locked.pub"));
    let host = sshd.known_hosts();
    let other_host = format!("{} {}", host.split(' ').next().unwrap(), key("stranger.pub"));
    place.secret("no-host", json!({"ssh-privatekey": sshd.private_key()}));
    place.secret("stranger", json!({"ssh-privatekey": key("stranger"), "known_hosts": host}));
    place.secret("other-host", json!({"ssh-privatekey": sshd.private_key(), "known_hosts": other_host}));
    place.secret("good", json!({"ssh-privatekey": sshd.private_key(), "known_hosts": host}));
    place.secret("locked", json!({"identity": key("locked"), "ssh-password": "open sesame", "known_hosts": host}));
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    for (secret, reason, word) in [
        (None, "SecretMalformed", "SSH needs a secret"),
        (Some("nobody"), "SecretNotFound", "nobody"),
        (Some("no-host"), "SecretMalformed", "known_hosts"),
        (Some("stranger"), "ConnectionFailed", "does not let us in"),
        (Some("other-host"), "ConnectionFailed", "known_hosts"),
    ] {
        with_secret(&place, &url, secret, reason, word);
    }
    place.apply_as(ALICE, &place.config_map("late", "1"));
    with_secret(&place, &url, Some("good"), "BranchFound", "main");
    place.wait_file(&place.config_map_path("late"), |_| true);
    place.apply_as(ALICE, &place.config_map("next", "1"));
    place.wait_file(&place.config_map_path("next"), |_| true);
    assert_eq!(place.commits(&place.config_map_path("next"))[0].author, ALICE_IS);
    // A key with a passphrase, and a server that goes away and comes back.
    with_secret(&place, &url, Some("locked"), "BranchFound", "main");
    sshd.down();
    place.apply_as(ALICE, &place.config_map("last", "1"));
    place.wait_reason("gitrepoconfig", "repo", "ConnectionFailed");
    sshd.up();
    place.wait_file(&place.config_map_path("last"), |_| true);
}

#[test]
fn a_branch_that_is_missing_or_not_allowed_is_named() {
    let place = shared().place("branch");
    place.foreign_commit(&[("README.md".into(), "hello".into())]);
    place.destination_with("live", "live", json!({"branch": "other"}));
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.apply_as(ALICE, &place.config_map("a", "1"));
    let message = place.wait_reason("gitrepoconfig", "repo", "BranchNotFound");
    assert!(message.contains("`other`"), "{message}");
    place.wait_reason("gitdestination", "live", "BranchNotFound");
    bare::git(&place.repository, &["branch", "other", "main"]);
    place.wait_reason("gitrepoconfig", "repo", "BranchFound");
    let path = place.config_map_path("a");
    wait("the file on the branch", || {
        let shown = bare::command(&place.repository).args(["show", &format!("other:{path}")]).output().ok()?;
        shown.status.success().then_some(())
    });
    assert_eq!(place.files(), ["README.md"], "the other branch is as it was");
    place.destination_with("live", "live", json!({"branch": "secret-plans"}));
    let message = place.wait_reason("gitdestination", "live", "BranchNotAllowed");
    assert!(message.contains("secret-plans"), "{message}");
}

#[test]
fn a_remote_that_rejects_is_quoted_and_tried_until_it_does_not() {
    let place = shared().place("rejects");
    let name = format!("{}.git", place.namespace);
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    place.git.refuse_pushes(&name, Some("main is protected until Monday"));
    place.apply_as(ALICE, &place.config_map("a", "1"));
    for (kind, object) in [("gitdestination", "live"), ("gitrepoconfig", "repo")] {
        let message = place.wait_reason(kind, object, "PushFailed");
        assert!(message.contains("main is protected until Monday"), "{message}");
    }
    place.git.refuse_pushes(&name, None);
    place.wait_file(&place.config_map_path("a"), |_| true);
    assert_eq!(place.commits("live")[0].author, ALICE_IS);
    place.wait_reason("gitdestination", "live", "Mirroring");
}

/// The server is away for a minute, which is several rounds of the operator's
/// backoff, and objects change all the time. Each change of an object is by the
/// other person, so none of them may be joined with the next.
#[test]
fn a_git_server_that_is_down_for_a_minute_while_objects_change() {
    const OBJECTS: usize = 4;
    let git = GitHttp::start();
    let place = Place::create(&shared().cluster, &git, "down");
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    git.set(Mode::Down);
    let people = [cluster::ALICE, cluster::BOB];
    let rounds = write_for_a_minute(&place, people, OBJECTS);
    place.wait_reason("gitdestination", "live", "ConnectionFailed");
    assert!(place.files().is_empty());
    git.set(Mode::Up);
    for object in 0..OBJECTS {
        let path = place.config_map_path(&format!("m{object}"));
        let last = (rounds - 1) * OBJECTS + object;
        place.wait_file(&path, |text| text.contains(&format!("value: \"{last}\"")));
        let authors: Vec<_> = place.commits(&path).into_iter().map(|commit| commit.author).collect();
        let expected: Vec<_> =
            (0..rounds).map(|round| format!("{0} <{0}@users.noreply.test>", people[round % 2])).collect();
        assert_eq!(authors, expected);
    }
    place.wait_reason("gitdestination", "live", "Mirroring");
}

/// Changes of each object by one person and then the other; how many of each.
fn write_for_a_minute(place: &Place<'_>, people: [&str; 2], objects: usize) -> usize {
    const OUTAGE: Duration = Duration::from_secs(60);
    /// A pace that leaves the machine to the other tests.
    const PAUSE: Duration = Duration::from_secs(1);
    let writers = people.map(|person| place.cluster.writer(person, &place.namespace));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (began, mut rounds) = (Instant::now(), 0);
        while began.elapsed() < OUTAGE {
            for object in 0..objects {
                let value = (rounds * objects + object).to_string();
                writers[rounds % 2].apply(&format!("m{object}"), &json!({"value": value})).await;
            }
            rounds += 1;
            tokio::time::sleep(PAUSE).await;
        }
        rounds
    })
}
