//! `kill -9` at any point, again and again: the next start converges and
//! repeats nothing.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tidegate_testkit::git_http::PASSWORD;

use crate::rig::{Cluster, REPOSITORY, Rig, config, destination, id, pushed, remote, seed, submit};
use tidegate_reverser::branch::{Branch, GitMetrics, Limits};
use tidegate_reverser::secrets::SecretPolicy;

const URL: &str = "TIDEGATE_TEST_KILL_URL";
const HOME: &str = "TIDEGATE_TEST_KILL_HOME";
const KILLS: usize = 12;
const OBJECTS: usize = 30;

/// The process that is killed: what the cluster has, as a seed and then as
/// changes by two people. Without its environment it is a test of nothing.
#[tokio::test]
async fn victim() {
    let (Ok(url), Ok(home)) = (std::env::var(URL), std::env::var(HOME)) else { return };
    let limits = Limits { silence: Duration::from_millis(1), files_max: 5, ..Limits::default() };
    let config = config(home.as_ref(), limits);
    let branch =
        Branch::start(config, remote(&url, PASSWORD), std::sync::Arc::new(Cluster::default()), GitMetrics::default());
    branch.set_destination(&id(), destination(SecretPolicy::Skip));
    let names: Vec<_> = (0..OBJECTS).map(|at| format!("n{at}")).collect();
    for (at, name) in names.iter().enumerate() {
        let ticket = submit(&branch, &[(name, if at % 2 == 0 { "alice" } else { "bob" }, "1")]);
        pushed(&branch, ticket).await;
    }
    let objects: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    pushed(&branch, seed(&branch, &objects)).await;
}

fn start(rig: &Rig) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::victim", "--nocapture"]);
    command.env(URL, rig.http.url(REPOSITORY)).env(HOME, rig.home.path());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn killed_in_a_loop() {
    let number = rand::random();
    println!("seed {number}");
    let (rig, mut random) = (Rig::new(), StdRng::seed_from_u64(number));
    for _ in 0..KILLS {
        let mut victim = start(&rig);
        // Where it dies is the point, not when: any moment will do.
        std::thread::sleep(Duration::from_millis(random.random_range(30..900)));
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    assert!(start(&rig).wait().unwrap().success());
    assert_eq!(rig.files().len(), OBJECTS);
    let subjects = rig.log();
    let distinct: BTreeSet<_> = subjects.iter().collect();
    assert_eq!(distinct.len(), subjects.len(), "{subjects:?}");
    assert_eq!(subjects.len(), OBJECTS, "{subjects:?}");
    rig.git("git fsck --strict");
}
