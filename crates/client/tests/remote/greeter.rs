//! The example runs: against a server, as its own service account.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, Options, TokenSource};
use tidegate_server::server;
use tokio::sync::watch;

use crate::support::{apply, options};

// Its `main` is for whoever runs it.
#[allow(dead_code)]
#[path = "../../../../examples/greeter/src/main.rs"]
mod example;

/// A test that waits longer for a state is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

const CREATE: &str = "mutation { createToken(input: {namespace: \"default\", serviceAccount: \"greeter\"}) { token } }";
const GREETING: &str = "{ node: resource(apiVersion: \"example.com/v1\", kind: \"Greeting\", namespace: \"default\", \
                        name: \"world\") { object } }";

async fn until_greeted(client: &Client, expected: &str) {
    let greeted = async {
        loop {
            let found: Value = client.query(GREETING, json!({})).await.unwrap();
            let status = &found["node"]["object"]["status"];
            if status["text"] == expected && status["conditions"][0]["status"] == "True" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, greeted).await.unwrap_or_else(|_| panic!("nobody says {expected}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greeter_greets() {
    let directory = tempfile::tempdir().unwrap();
    let server = server::start(options(directory.path())).await.unwrap();
    let (api, shutdown, url) = (server.api().clone(), server.shutdown(), server.url());
    let admin = Client::new(&Options::new(&url, TokenSource::File(server.admin_token_path().to_owned()))).unwrap();
    let task = tokio::spawn(server.run());
    apply(&api, "crd.yaml", include_str!("../../../../examples/greetings/crd.yaml")).await;
    apply(&api, "account.yaml", include_str!("../../../../examples/greetings/account.yaml")).await;
    apply(&api, "greeting.yaml", include_str!("../../../../examples/greetings/greeting.yaml")).await;
    let made: Value = admin.query(CREATE, json!({})).await.unwrap();
    let token_file = directory.path().join("greeter.token");
    std::fs::write(&token_file, made["createToken"]["token"].as_str().unwrap()).unwrap();

    let (stop, stopped) = watch::channel(false);
    let path = token_file.to_str().unwrap().to_owned();
    let greeting =
        tokio::spawn(async move { example::run(&url, &path, stopped).await.map_err(|error| error.to_string()) });
    until_greeted(&admin, "Hello, World!").await;
    let changed = include_str!("../../../../examples/greetings/greeting.yaml")
        .replace("spec: {name: World}", "spec: {name: Moon}");
    apply(&api, "greeting.yaml", &changed).await;
    until_greeted(&admin, "Hello, Moon!").await;
    stop.send_replace(true);
    greeting.await.unwrap().unwrap();
    shutdown.drain();
    task.await.unwrap();
}
