//! How soon a rule or a type that appears, changes or goes has its effect.
//!
//! From the moment at which the API server is asked to the moment at which the
//! remote's branch has the files, or has them no more.

use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use tidegate_testkit::cluster::ADMIN;

use super::PATIENCE;
use super::branch::RemoteBranch;
use super::operator::Operator;
use super::site::{Place, Site};
use crate::table::{Table, percentile};

const ROUNDS: usize = 40;
const GOAL: &str = "within a second";
const GROUP: &str = "bench.example.com";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

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

struct Reactions<'r> {
    site: &'r Site,
    place: &'r Place,
    branch: &'r RemoteBranch,
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
        row(table, "a rule created, until its files are pushed", created);
        row(table, "a rule changed, until its files are pushed or removed", changed);
        row(table, "a rule deleted, until its files are removed", deleted);
        Ok(())
    }

    /// A type that a rule waits for comes, has an object, and goes.
    async fn types(&self, table: &mut Table) -> anyhow::Result<()> {
        let (mut came, mut went) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let (kind, plural) = (format!("Widget{round}"), format!("widget{round}s"));
            let rule = json!({"destinationRef": {"name": "live"}, "rules": [{"resources": [plural]}]});
            let rule = self.of("WatchRule", "configbutler.ai/v1alpha1", &plural, json!({"spec": rule}));
            self.site.cluster.apply(ADMIN, &rule.to_string());
            self.site.api.create(CRDS, &definition(&kind, &plural)).await?;
            let objects = format!("/apis/{GROUP}/v1/namespaces/{}/{plural}", self.place.namespace);
            let object = self.of(&kind, &format!("{GROUP}/v1"), "first", json!({}));
            let served = self.served(&objects, &object).await?;
            let file = format!("live/{GROUP}/v1/{plural}/{}/first.yaml", self.place.namespace);
            came.push(self.until(&file, true, served).await?);
            let asked = Instant::now();
            self.site.api.delete(&format!("{CRDS}/{plural}.{GROUP}")).await?;
            went.push(self.until(&file, false, asked).await?);
        }
        row(table, "a CRD appears: from the first object that the API server takes until it is pushed", came);
        row(table, "a CRD deleted, until its objects' files are removed", went);
        Ok(())
    }

    /// The moment at which the API server was asked for what it then did.
    async fn served(&self, path: &str, object: &Value) -> anyhow::Result<Instant> {
        let started = Instant::now();
        loop {
            let asked = Instant::now();
            match self.site.api.create(path, object).await {
                Ok(()) => return Ok(asked),
                Err(error) if started.elapsed() > PATIENCE => return Err(error).context("the type is not served"),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    }

    async fn until(&self, file: &str, is_there: bool, asked: Instant) -> anyhow::Result<f64> {
        let at = self.branch.wait_file(file, is_there, PATIENCE).await?;
        Ok(at.duration_since(asked).as_secs_f64() * 1e3)
    }

    fn of(&self, kind: &str, version: &str, name: &str, more: Value) -> Value {
        let mut object = more;
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": name, "namespace": self.place.namespace});
        object
    }
}

fn row(table: &mut Table, what: &str, mut lags_ms: Vec<f64>) {
    let [p50, p99, max] = [50.0, 99.0, 100.0].map(|of| percentile(&mut lags_ms, of) / 1e3);
    let measured = format!("p50 {p50:.2} s, p99 {p99:.2} s, max {max:.2} s of {}", lags_ms.len());
    table.row(format!("reverser: {what}"), measured, GOAL, "");
}

fn definition(kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}
