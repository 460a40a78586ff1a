//! How soon a type that appears or goes has its effect.
//!
//! kube-apiserver holds up every `create` of a type that it has established
//! less than two seconds ago, by two seconds. A server-side apply creates
//! without that wait, so it shows what the operator itself takes; a plain
//! create is measured beside it, with the time that the API server kept it.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use tidegate_testkit::cluster::ADMIN;

use super::PATIENCE;
use super::reaction::{GOAL, ROUNDS, Reactions, row};
use crate::table::{Table, percentile};

const GROUP: &str = "bench.example.com";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Most of each is the API server's own wait.
const ROUNDS_CREATED: usize = 10;
/// Types come at once after a change, and up to 3.5 s after it: whoever looks
/// less and less often after a change must not overlook the next one.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSES: u32 = 8;
/// How exactly the moment is known at which a type is served.
const POLL: Duration = Duration::from_millis(5);

/// How a type's first object comes to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Applied,
    Created,
}

/// One type's life, in milliseconds.
struct Life {
    /// The CRD was asked for, until its object was pushed.
    from_definition: f64,
    /// The object that the API server took was sent, until it was pushed.
    from_object: f64,
    /// The same, until the API server answered.
    answered: f64,
    /// The CRD's deletion was asked for, until the file was removed.
    gone: f64,
}

impl Reactions<'_> {
    /// Types that a rule waits for come, have an object, and go.
    pub(super) async fn types(&self, table: &mut Table) -> anyhow::Result<()> {
        let mut applied = Vec::new();
        for (round, pauses) in (0..ROUNDS).zip((0..PAUSES).cycle()) {
            tokio::time::sleep(PAUSE * pauses).await;
            applied.push(self.live(&format!("applied{round}"), First::Applied).await?);
        }
        let mut created = Vec::new();
        for round in 0..ROUNDS_CREATED {
            created.push(self.live(&format!("created{round}"), First::Created).await?);
        }
        let each = |lives: &[Life], of: fn(&Life) -> f64| lives.iter().map(of).collect::<Vec<_>>();
        let from_object = "a CRD appears: from the first object that the API server takes until it is pushed";
        row(table, from_object, each(&applied, |life| life.from_object), GOAL);
        let from_definition = "the same from the moment at which the CRD is created";
        row(table, from_definition, each(&applied, |life| life.from_definition), GOAL);
        let held = percentile(&mut each(&created, |life| life.answered), 50.0) / 1e3;
        let plain = format!("the same with a plain create, which the API server answers after {held:.2} s");
        row(table, &plain, each(&created, |life| life.from_definition), "");
        let all: Vec<_> = applied.into_iter().chain(created).collect();
        row(table, "a CRD deleted, until its objects' files are removed", each(&all, |life| life.gone), GOAL);
        Ok(())
    }

    async fn live(&self, name: &str, first: First) -> anyhow::Result<Life> {
        let (kind, plural) = (format!("Widget{name}"), format!("widget{name}s"));
        let rule = json!({"destinationRef": {"name": "live"}, "rules": [{"resources": [plural]}]});
        let rule = self.of("WatchRule", "configbutler.ai/v1alpha1", &plural, json!({"spec": rule}));
        self.site.cluster.apply(ADMIN, &rule.to_string());
        let objects = format!("/apis/{GROUP}/v1/namespaces/{}/{plural}", self.place.namespace);
        let object = self.of(&kind, &format!("{GROUP}/v1"), "first", json!({}));
        let file = format!("live/{GROUP}/v1/{plural}/{}/first.yaml", self.place.namespace);
        let defined = Instant::now();
        self.site.api.create(CRDS, &definition(&kind, &plural)).await?;
        let (taken, answered) = self.taken(&objects, &object, first).await?;
        let from_object = self.until(&file, true, taken).await?;
        let deleted = Instant::now();
        self.site.api.delete(&format!("{CRDS}/{plural}.{GROUP}")).await?;
        let gone = self.until(&file, false, deleted).await?;
        let from_definition = from_object + millis(taken.duration_since(defined));
        Ok(Life { from_definition, from_object, answered: millis(answered), gone })
    }

    /// When the API server was asked for what it then did, and how long it took.
    async fn taken(&self, path: &str, object: &Value, first: First) -> anyhow::Result<(Instant, Duration)> {
        let started = Instant::now();
        loop {
            let asked = Instant::now();
            let answer = match first {
                First::Applied => self.site.api.apply(&format!("{path}/first"), object).await,
                First::Created => self.site.api.create(path, object).await,
            };
            match answer {
                Ok(()) => return Ok((asked, asked.elapsed())),
                Err(error) if started.elapsed() > PATIENCE => return Err(error).context("the type is not served"),
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
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
