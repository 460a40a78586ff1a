//! How far Git is behind while two people change things all the time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tidegate_testkit::cluster::{ALICE, BOB};
use tokio::task::JoinSet;

use super::branch::{Push, RemoteBranch};
use super::operator::Operator;
use super::site::{Place, Site};
use super::{LAG_GOAL, PATIENCE};
use crate::table::{Table, percentile};

const CHANGES_PER_S: usize = 200;
/// An object's turn comes every five seconds, so that no change replaces one
/// that still waits.
const OBJECTS: usize = 1_000;

/// One change, by its number: when it was sent.
type Sent = Vec<Instant>;

pub async fn run(table: &mut Table, site: &Site, load: Duration, flags: &[&str]) -> anyhow::Result<()> {
    let place = site.place("lag")?;
    site.api.fill(&place.namespace, OBJECTS).await?;
    let branch = RemoteBranch::watch(&place.repository)?;
    let operator = Operator::start(site, flags)?;
    branch.wait_files(OBJECTS, PATIENCE).await?;
    site.wait_mirroring(&place).await?;
    let seeded = branch.pushes().pop().context("a push")?;
    let sent = write(site, &place, load).await?;
    let mut lags_ms = wait_pushed(&branch, &seeded, &sent).await?;
    let authors = branch.authors(&seeded.commit)?;
    let known = authors.iter().filter(|author| [ALICE, BOB].contains(&author.as_str())).count();
    let pushes = branch.pushes().len() - 1;
    operator.stop().await?;
    let windows = if flags.is_empty() { "default windows".to_owned() } else { flags.join(" ") };
    let (p50, p99) = (percentile(&mut lags_ms, 50.0) / 1e3, percentile(&mut lags_ms, 99.0) / 1e3);
    let max = percentile(&mut lags_ms, 100.0) / 1e3;
    table.row(
        format!("reverser: {CHANGES_PER_S} changes/s by two people for {} s, {windows}: write to pushed commit", load.as_secs()),
        format!(
            "p50 {p50:.2} s, p99 {p99:.2} s, max {max:.2} s; all {} changes in {} commits, {known} with their author, {pushes} pushes",
            sent.len(), authors.len()
        ),
        if flags.is_empty() { LAG_GOAL } else { "" },
        "",
    );
    Ok(())
}

/// One after the other at an even pace, whether or not the last was answered.
async fn write(site: &Site, place: &Place, load: Duration) -> anyhow::Result<Sent> {
    let tokens = [ALICE, BOB].map(|person| site.cluster.token(person));
    let count = CHANGES_PER_S * usize::try_from(load.as_secs())?;
    let mut pace = tokio::time::interval(Duration::from_secs(1) / u32::try_from(CHANGES_PER_S)?);
    let (mut sent, mut writes) = (Vec::with_capacity(count), JoinSet::new());
    for number in 0..count {
        pace.tick().await;
        let (api, namespace, token) = (site.api.clone(), place.namespace.clone(), tokens[number % 2].clone());
        sent.push(Instant::now());
        // Numbers begin at 1: 0 is what the objects have at first.
        writes.spawn(async move { api.change(&token, &namespace, number % OBJECTS, number + 1).await });
    }
    while let Some(written) = writes.join_next().await {
        written??;
    }
    Ok(sent)
}

/// The lag of every change, in milliseconds, once the branch has them all.
async fn wait_pushed(branch: &RemoteBranch, seeded: &Push, sent: &Sent) -> anyhow::Result<Vec<f64>> {
    let (started, mut lags) = (Instant::now(), HashMap::new());
    let mut last = seeded.commit.clone();
    let mut read = branch.pushes().iter().position(|push| push.commit == seeded.commit).context("the seed")? + 1;
    while lags.len() < sent.len() {
        for push in branch.pushes().into_iter().skip(read) {
            for changed in branch.changed(&last, &push.commit)? {
                for number in changed.lines.iter().filter_map(|line| number(line)) {
                    let at =
                        sent.get(number - 1).with_context(|| format!("{}: {number} is no change", changed.path))?;
                    lags.insert(number, push.at.duration_since(*at).as_secs_f64() * 1e3);
                }
            }
            last = push.commit;
            read += 1;
        }
        ensure!(started.elapsed() < PATIENCE, "{} of {} changes are in Git", lags.len(), sent.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(lags.into_values().collect())
}

fn number(line: &str) -> Option<usize> {
    line.trim().strip_prefix("number: ")?.trim_matches('"').parse().ok()
}
