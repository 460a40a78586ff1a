//! A controller in one file: for each `Greeting` it reports the text that the
//! spec asks for.
//!
//! With the objects of `examples/greetings` in force and a token of their
//! service account:
//!
//! ```text
//! cargo run -p greeter -- http://127.0.0.1:7300 greeter.token
//! ```

use std::error::Error;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_client::{Client as Connection, Options, RemotePlane, TokenSource};
use tidegate_model::ObjectKey;
use tidegate_runtime::{Client, Controller, Kind, Manager, ManagerOptions, Next, ReconcileError, Reconciler};
use tokio::sync::watch;

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

/// Greets until `stop` is true.
pub async fn run(server: &str, token_file: &str, stop: watch::Receiver<bool>) -> Result<(), Box<dyn Error>> {
    let connection = Connection::new(&Options::new(server, TokenSource::File(token_file.into())))?;
    // The lease, and our name in it. Of several greeters one works.
    let options = ManagerOptions::new("default", "greeter", "greeter");
    let manager = Manager::new(Arc::new(RemotePlane::new(connection)), options);
    let kind = Kind::new("example.com/v1", "Greeting", "greetings");
    let greeter = Greeter { kind: kind.clone(), client: manager.client() };
    manager.add(Controller::new("greeter", kind, greeter).concurrency(4))?;
    manager.run(stop).await;
    Ok(())
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, token_file] = &arguments[..] else { return Err("give SERVER and TOKEN_FILE".into()) };
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.send_replace(true);
    });
    run(server, token_file, stopped).await
}
