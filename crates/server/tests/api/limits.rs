//! What one client may ask for, and what it is told beyond.

use serde_json::json;

use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_has_its_code() {
    let server = TestServer::start_with(|options| {
        options.graphql.depth_max = 3;
        options.graphql.complexity_max = 20;
        options.graphql.watches_per_identity_max = 2;
        options.graphql.subscriptions_per_connection_max = 3;
        options.http.body_bytes_max = 10_000;
    })
    .await;
    let client = &server.client;
    let deep = "{ namespaces { nodes { metadata { name } } } }";
    assert_eq!(client.code(deep, json!({})).await, "TOO_LARGE");
    let wide = format!("{{ {} }}", (0..30).map(|at| format!("a{at}: whoami {{ user }} ")).collect::<String>());
    assert_eq!(client.code(&wide, json!({})).await, "TOO_LARGE");
    assert_eq!(client.code("{ whoami { user } }", json!({"pad": "x".repeat(20_000)})).await, "TOO_LARGE");

    let watch = "subscription { watchNamespaces(sendInitialEvents: true) { initialEventsEnd } }";
    let mut first = client.subscribe(watch, json!({})).await;
    let mut second = client.subscribe(watch, json!({})).await;
    first.event().await;
    second.event().await;
    let mut third = client.subscribe(watch, json!({})).await;
    assert_eq!(third.ending().await, "RATE_LIMITED");
    drop(first);
    // The place is free when the server has noticed.
    loop {
        let mut again = client.subscribe(watch, json!({})).await;
        if again.next().await.unwrap()["type"] == "next" {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_so_many_subscriptions() {
    let server = TestServer::start_with(|options| options.graphql.subscriptions_per_connection_max = 1).await;
    let mut socket = server.client.connect().await;
    let watch = "subscription { watchNamespaces(sendInitialEvents: true) { initialEventsEnd } }";
    socket.subscribe("1", watch, json!({})).await;
    socket.subscribe("2", watch, json!({})).await;
    assert_eq!(socket.ending().await, "RATE_LIMITED");
}
