//! How soon a rule that appears, changes or goes has its effect.
//!
//! From the moment at which the API server is asked to the moment at which the
//! remote's branch has the files, or has them no more.

use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;
use super::branch::RemoteBranch;
use super::operator::Operator;
use super::site::{Place, Site};
use crate::table::{Table, percentile};

pub(super) const ROUNDS: usize = 40;
pub(super) const GOAL: &str = "within a second";

pub async fn run(table: &mut Table, site: &Site) -> anyhow::Result<()> {
    let place = site.place("reaction")?;
    site.api.fill(&place.namespace, 1).await?;
    let branch = RemoteBranch::watch(&place.repository)?;
    let operator = Operator::start(site, &["--git-batch-silence", "0s"])?;
    branch.wait_files(1, PATIENCE).await?;
    let reactions = Reactions { site, place: &place, branch: &branch };
    reactions.rules(table).await?;
    reactions.types(table).await?;
    operator.stop().await
}

pub(super) struct Reactions<'r> {
    pub site: &'r Site,
    pub place: &'r Place,
    pub branch: &'r RemoteBranch,
}

impl Reactions<'_> {
    /// A rule goes, comes again, and selects something else and back.
    async fn rules(&self, table: &mut Table) -> anyhow::Result<()> {
        let rules = format!("/apis/configbutler.ai/v1alpha1/namespaces/{}/watchrules", self.place.namespace);
        let rule = format!("{rules}/maps");
        let spec = |resource: &str| json!({"destinationRef": {"name": "live"}, "rules": [{"resources": [resource]}]});
        let object = self.of("WatchRule", "configbutler.ai/v1alpha1", "maps", json!({"spec": spec("configmaps")}));
        let file = format!("live/v1/configmaps/{}/n0.yaml", self.place.namespace);
        let (mut deleted, mut created, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            self.site.api.delete(&rule).await?;
            deleted.push(self.until(&file, false, asked).await?);
            let asked = Instant::now();
            self.site.api.create(&rules, &object).await?;
            created.push(self.until(&file, true, asked).await?);
            for (resource, is_there) in [("services", false), ("configmaps", true)] {
                let asked = Instant::now();
                self.site.api.merge(&rule, &json!({"spec": spec(resource)})).await?;
                changed.push(self.until(&file, is_there, asked).await?);
            }
        }
        row(table, "a rule created, until its files are pushed", created, GOAL);
        row(table, "a rule changed, until its files are pushed or removed", changed, GOAL);
        row(table, "a rule deleted, until its files are removed", deleted, GOAL);
        Ok(())
    }

    /// Milliseconds from `asked` until the branch has the file, or has it no more.
    pub(super) async fn until(&self, file: &str, is_there: bool, asked: Instant) -> anyhow::Result<f64> {
        let at = self.branch.wait_file(file, is_there, PATIENCE).await?;
        Ok(at.duration_since(asked).as_secs_f64() * 1e3)
    }

    pub(super) fn of(&self, kind: &str, version: &str, name: &str, more: Value) -> Value {
        let mut object = more;
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": name, "namespace": self.place.namespace});
        object
    }
}

pub(super) fn row(table: &mut Table, what: &str, mut lags_ms: Vec<f64>, goal: &str) {
    let [p50, p99, max] = [50.0, 99.0, 100.0].map(|of| percentile(&mut lags_ms, of) / 1e3);
    let measured = format!("p50 {p50:.2} s, p99 {p99:.2} s, max {max:.2} s of {}", lags_ms.len());
    table.row(format!("reverser: {what}"), measured, goal, "");
}
