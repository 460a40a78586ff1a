//! A controller in one file: for each `Greeting` it reports the text that the
//! spec asks for. A program that runs it needs a plane, such as the one of
//! `tidegate control`; everything that is the author's is here.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_model::ObjectKey;
use tidegate_runtime::{
    AddError, Client, Controller, Kind, Manager, ManagerOptions, Next, Plane, ReconcileError, Reconciler,
};

/// The part of the object that this controller reads.
#[derive(Deserialize)]
struct Greeting {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    generation: i64,
}

#[derive(Deserialize)]
struct Spec {
    name: String,
}

struct Greeter {
    kind: Kind,
    client: Client,
}

impl Reconciler for Greeter {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        // Reads, reports, and begins again if somebody wrote in between; does
        // nothing if the object is gone.
        let reported = self.client.report(&self.kind, key, |item| {
            let Greeting { metadata: Metadata { generation }, spec } = item.parse()?;
            Ok(Some(json!({
                "observedGeneration": generation,
                "text": format!("Hello, {}!", spec.name),
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "Greeted", "message": "",
                    "observedGeneration": generation,
                }],
            })))
        });
        reported.await?;
        Ok(Next::AwaitChange)
    }
}

/// A manager with this one controller; `run` it until it is time to stop.
fn manager(plane: Arc<dyn Plane>, holder: &str) -> Result<Manager, AddError> {
    let manager = Manager::new(plane, ManagerOptions::new("default", "greeter", holder));
    let kind = Kind::new("example.com/v1", "Greeting", "greetings");
    let greeter = Greeter { kind: kind.clone(), client: manager.client() };
    manager.add(Controller::new("greeter", kind, greeter).concurrency(4))?;
    Ok(manager)
}

fn main() {
    // Wired by the program that has a plane: `manager(plane, "me")?.run(stop)`.
    let _ = manager;
}
