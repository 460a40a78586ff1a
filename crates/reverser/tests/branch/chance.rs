//! Random changes of random people in random batches: the history is what a
//! few lines of a model say it is. Prints its seed.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tidegate_reverser::branch::Limits;
use tidegate_reverser::secrets::SecretPolicy;

use crate::rig::{Rig, destination, pushed, submit};

const ROUNDS: usize = 12;
const CHANGES_MAX: usize = 40;
const PEOPLE: [&str; 3] = ["alice", "bob", ""];
const OBJECTS: u32 = 6;
/// So few that commits grow beyond it.
const FILES_MAX: usize = 2;

type Told = (String, &'static str, String);

/// Authors and how many objects each commit names, of one batch.
fn model(files: &mut BTreeMap<String, String>, told: &[Told]) -> Vec<(&'static str, usize)> {
    // One person's changes of one object are one, at the place of the last.
    let is_last_of_run = |at: usize| {
        let (name, who, _) = &told[at];
        told[at + 1..].iter().find(|(next, ..)| next == name).is_none_or(|(_, next, _)| next != who)
    };
    let mut commits: Vec<(&str, usize)> = Vec::new();
    let mut begun = files.clone();
    // Changes of the batch, and those of them before the commit.
    let (mut changes, mut before_it) = (0, 0);
    for (name, who, value) in (0..told.len()).filter(|at| is_last_of_run(*at)).map(|at| &told[at]) {
        let before = files.get(name).map_or("", String::as_str);
        if before == value {
            continue;
        }
        match commits.last_mut() {
            Some((of, count)) if of == who && *count < FILES_MAX.max(before_it / 4) => *count += 1,
            last => {
                // Back and forth within one commit is no commit.
                if last.is_some() && *files == begun {
                    commits.pop();
                }
                commits.push((who, 1));
                (begun, before_it) = (files.clone(), changes);
            }
        }
        changes += 1;
        match value.as_str() {
            "" => drop(files.remove(name)),
            value => drop(files.insert(name.clone(), value.to_owned())),
        }
    }
    if !commits.is_empty() && *files == begun {
        commits.pop();
    }
    commits
}

#[tokio::test]
async fn the_history_is_what_people_did() {
    let number = rand::random();
    println!("seed {number}");
    let (rig, mut random) = (Rig::new(), StdRng::seed_from_u64(number));
    let hour = Duration::from_secs(3600);
    // Nothing is written before it is asked for; a full batch would be.
    let limits = Limits { silence: hour, wait_max: hour, ..rig.limits() };
    let branch = rig.branch_with(Limits { files_max: FILES_MAX, ..limits }, destination(SecretPolicy::Skip));
    let (mut files, mut expected) = (BTreeMap::new(), Vec::new());
    for _ in 0..ROUNDS {
        let told: Vec<Told> = (0..random.random_range(1..CHANGES_MAX)).map(|_| change(&mut random)).collect();
        let changes: Vec<_> = told.iter().map(|(name, who, value)| (name.as_str(), *who, value.as_str())).collect();
        // In one go: no batch is taken between two of them.
        let ticket = submit(&branch, &changes);
        branch.flush();
        pushed(&branch, ticket).await;
        expected.extend(model(&mut files, &told));
    }
    let trailers = "%(trailers:key=X-ConfigButler-Object,valueonly=true,separator=%x2C)";
    let log = rig.git(&format!("git log --reverse --format='%an%x09{trailers}' main"));
    let commit = |line: &str| {
        let (who, objects) = line.split_once('\t').unwrap();
        (who.replace("unknown", ""), objects.split(',').count())
    };
    let found: Vec<_> = log.lines().map(commit).collect();
    let expected: Vec<_> = expected.into_iter().map(|(who, count)| (who.to_owned(), count)).collect();
    assert_eq!(found, expected);
    let names: Vec<_> = files.keys().map(|name| format!("live/v1/configmaps/default/{name}.yaml")).collect();
    assert_eq!(rig.files().into_keys().collect::<Vec<_>>(), names);
    for (name, value) in &files {
        let text = &rig.files()[&format!("live/v1/configmaps/default/{name}.yaml")];
        assert!(text.contains(&format!("v: \"{value}\"")), "{name} is not {value}: {text}");
    }
}

/// Few values, so that some changes change nothing.
fn change(random: &mut StdRng) -> Told {
    let value = match random.random_range(0..5) {
        0 => String::new(),
        value => value.to_string(),
    };
    let who = PEOPLE[random.random_range(0..PEOPLE.len())];
    (format!("n{}", random.random_range(0..OBJECTS)), who, value)
}
