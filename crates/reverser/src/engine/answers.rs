//! APIs that begin to answer: watches that failed before ask them at once.
//!
//! The API server answers 503 for an aggregated API whose own server it has not
//! reached yet, and 404 for our own kinds before they are installed. A watch
//! that met that a few times would wait for many seconds although the API has
//! been there for long.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use super::state::{Engine, Msg};
use crate::claims::{GroupVersion, TypeId};
use crate::cluster::{ApiError, Consumer, Discovered};
use crate::config::{GROUP, VERSION};

/// Tells discovery of each change, and the engine of each API that answers
/// from now on.
pub(super) struct Services {
    changed: Arc<Notify>,
    to: mpsc::Sender<Msg>,
    available: BTreeSet<GroupVersion>,
    /// Those of the list before, while another one is read.
    before: BTreeSet<GroupVersion>,
}

impl Services {
    pub fn new(changed: Arc<Notify>, to: mpsc::Sender<Msg>) -> Self {
        Self { changed, to, available: BTreeSet::new(), before: BTreeSet::new() }
    }

    async fn note(&mut self, service: &Value) {
        let of = of_service(service);
        if !is_available(service) {
            self.available.remove(&of);
        } else if self.available.insert(of.clone()) && !self.before.contains(&of) {
            let _ = self.to.send(Msg::Answers(vec![of])).await;
        }
    }
}

impl Consumer for Services {
    fn restart(&mut self) {
        self.before.append(&mut self.available);
    }

    async fn listed(&mut self, service: Value) {
        self.note(&service).await;
    }

    async fn complete(&mut self) {
        self.before.clear();
        self.changed.notify_one();
    }

    async fn changed(&mut self, service: Value) {
        self.note(&service).await;
        self.changed.notify_one();
    }

    async fn gone(&mut self, service: Value) {
        self.available.remove(&of_service(&service));
        self.changed.notify_one();
    }

    async fn failed(&mut self, _: &ApiError) {}

    async fn recovered(&mut self) {}
}

impl Engine {
    /// The same by what discovery said before, and says now.
    pub(super) fn note_answers(&self, before: Option<&Discovered>) {
        let Some(now) = &self.discovered else { return };
        let failed = before.map(|before| before.failed.as_slice()).unwrap_or_default();
        let answers: Vec<_> = failed.iter().filter(|of| !now.failed.contains(of)).cloned().collect();
        self.hear_answers(&answers);
        for (kind, cue) in &self.config_cues {
            let id = TypeId::new(GROUP, VERSION, kind.plural());
            let is_served = |discovered: &Discovered| discovered.catalog.find(&id).is_some();
            if is_served(now) && !before.is_some_and(is_served) {
                cue.retry();
            }
        }
    }

    /// Watches of these that wait after failures ask again at once.
    pub(super) fn hear_answers(&self, of: &[GroupVersion]) {
        let is_of = |(group, version): (&str, &str)| of.iter().any(|of| of.group == group && of.version == version);
        for (id, watched) in &self.claims {
            if is_of((&id.of.group, &id.of.version)) {
                watched.watch.retry();
            }
        }
    }
}

fn of_service(service: &Value) -> GroupVersion {
    let text = |field: &str| service["spec"][field].as_str().unwrap_or_default();
    GroupVersion::new(text("group"), text("version"))
}

fn is_available(service: &Value) -> bool {
    let conditions = service["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|own| own["type"] == "Available" && own["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(version: &str, available: &str) -> Value {
        json!({
            "spec": {"group": "late.example.com", "version": version},
            "status": {"conditions": [{"type": "Available", "status": available}]},
        })
    }

    #[tokio::test]
    async fn an_api_is_told_of_when_it_begins_to_answer() {
        let (to, mut inbox) = mpsc::channel(16);
        let mut services = Services::new(Arc::default(), to);
        let mut told = || match inbox.try_recv() {
            Ok(Msg::Answers(of)) => of.into_iter().map(|of| of.version).collect::<String>(),
            _ => String::new(),
        };
        services.restart();
        services.listed(service("v1", "False")).await;
        services.listed(service("v2", "True")).await;
        services.complete().await;
        assert_eq!(told(), "v2");
        services.changed(service("v2", "True")).await;
        assert_eq!(told(), "", "nothing new");
        services.changed(service("v1", "True")).await;
        assert_eq!(told(), "v1");
        services.changed(service("v1", "False")).await;
        services.changed(service("v1", "True")).await;
        assert_eq!(told(), "v1", "each time");
        // A list that starts again, and then shows what was missed.
        services.changed(service("v2", "False")).await;
        services.restart();
        services.restart();
        services.listed(service("v1", "True")).await;
        services.listed(service("v2", "True")).await;
        services.complete().await;
        assert_eq!((told(), told()), ("v2".into(), String::new()));
        services.gone(service("v2", "True")).await;
        services.changed(service("v2", "True")).await;
        assert_eq!(told(), "v2", "another one of that name");
    }
}
