//! The watch contract over the WebSocket.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::client::{Client, Socket};

use crate::support::{TestServer, WIDGETS, widget_key, widget_yaml};

const WATCH: &str = r#"subscription($rv: String, $initial: Boolean, $labels: String, $bookmarks: Boolean) {
    watchWidgets(namespace: "default", resourceVersion: $rv, sendInitialEvents: $initial, labelSelector: $labels, allowBookmarks: $bookmarks) {
      type kind namespace name resourceVersion initialEventsEnd object { metadata { name resourceVersion } spec { size } }
    } }"#;

async fn version(client: &Client) -> Value {
    client.data("{ widgets { resourceVersion } }", json!({})).await["widgets"]["resourceVersion"].take()
}

fn brief(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or("-").to_owned();
    format!("{} {}", text("type"), text("name"))
}

/// The next events that are not bookmarks.
async fn changes(socket: &mut Socket, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    while found.len() < count {
        let event = socket.event().await;
        if event["type"] != "BOOKMARK" {
            found.push(brief(&event));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn initial_events_then_a_bookmark_then_changes() {
    let server = TestServer::with_widgets().await;
    server.widget("a", "{}").await;
    server.widget("b", "{}").await;
    let mut socket = server.client.subscribe(WATCH, json!({"initial": true})).await;
    for expected in ["ADDED a", "ADDED b"] {
        assert_eq!(brief(&socket.event().await), expected);
    }
    let end = socket.event().await;
    assert_eq!(
        (&end["type"], &end["initialEventsEnd"], &end["object"]),
        (&json!("BOOKMARK"), &json!(true), &Value::Null)
    );
    server.project(&[("a.yaml", &widget_yaml("a", "{}", 2))], &[]).await.unwrap();
    let event = socket.event().await;
    assert_eq!(brief(&event), "MODIFIED a");
    assert_eq!(event["object"]["spec"]["size"], 2);
    assert_eq!(event["object"]["metadata"]["resourceVersion"], event["resourceVersion"]);
    assert!(event["resourceVersion"].as_str() > end["resourceVersion"].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_resumes_where_it_was() {
    let server = TestServer::with_widgets().await;
    let mut socket = server.client.subscribe(WATCH, json!({"rv": version(&server.client).await})).await;
    server.widget("a", "{}").await;
    let seen = socket.event().await;
    drop(socket);
    server.widget("b", "{}").await;
    server.project(&[], &[("a.yaml", widget_key("a"))]).await.unwrap();
    let mut socket = server.client.subscribe(WATCH, json!({"rv": seen["resourceVersion"]})).await;
    assert_eq!(changes(&mut socket, 2).await, ["ADDED b", "DELETED a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_survives_a_restart() {
    let server = TestServer::with_widgets().await;
    let cursor = version(&server.client).await;
    server.widget("a", "{}").await;
    let dir = server.stop().await;
    let server = TestServer::start_in(dir, |_| {}).await;
    server.widget("b", "{}").await;
    let mut socket = server.client.subscribe(WATCH, json!({"rv": cursor})).await;
    assert_eq!(changes(&mut socket, 2).await, ["ADDED a", "ADDED b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_that_cannot_be_served_say_why() {
    let server = TestServer::with_widgets().await;
    let newest: u64 = version(&server.client).await.as_str().unwrap().parse().unwrap();
    for (cursor, code) in [
        ((newest + 1).to_string(), "FUTURE_RESOURCE_VERSION"),
        // The line of a store that was made a year earlier.
        ((newest - ((365 * 24 * 3600) << 20)).to_string(), "WATCH_EXPIRED"),
        ("37".into(), "INVALID_RESOURCE_VERSION"),
        ("nonsense".into(), "INVALID_RESOURCE_VERSION"),
        (String::new(), "INVALID_RESOURCE_VERSION"),
    ] {
        let mut socket = server.client.subscribe(WATCH, json!({"rv": cursor})).await;
        let message = socket.next().await.unwrap();
        assert_eq!(message["payload"][0]["extensions"]["code"], code, "{cursor}: {message}");
        if code == "WATCH_EXPIRED" {
            let extensions = &message["payload"][0]["extensions"];
            assert!(
                extensions["oldestResourceVersion"].is_string() && extensions["currentResourceVersion"].is_string()
            );
        }
    }
    let missing = WATCH
        .replace("watchWidgets(namespace", "watchResources(apiVersion: \"x/v1\", kind: \"Gone\", namespace")
        .replace("object { metadata { name resourceVersion } spec { size } }", "object");
    let mut socket = server.client.subscribe(&missing, json!({})).await;
    assert_eq!(socket.ending().await, "KIND_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_left_the_window_is_told_so() {
    let server = TestServer::start_with(|options| {
        options.store.window.events = 64;
        options.store.maintenance_interval = Duration::from_millis(10);
    })
    .await;
    server.apply("crd.yaml", WIDGETS).await;
    let cursor = version(&server.client).await;
    // The window moves in the background: try until it has.
    let code = loop {
        server.bulk(0..200, 1).await;
        let mut socket = server.client.subscribe(WATCH, json!({"rv": cursor})).await;
        let message = socket.next().await.unwrap();
        if message["type"] == "error" {
            break message["payload"][0]["extensions"]["code"].clone();
        }
    };
    assert_eq!(code, "WATCH_EXPIRED");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_enters_and_leaves_a_filter() {
    let server = TestServer::with_widgets().await;
    let start = version(&server.client).await;
    let mut live = server.client.subscribe(WATCH, json!({"rv": start, "labels": "tier=gold"})).await;
    for labels in ["{tier: silver}", "{tier: gold}", "{tier: gold, x: z}", "{tier: silver}", "{tier: gold}"] {
        server.widget("a", labels).await;
    }
    server.project(&[], &[("a.yaml", widget_key("a"))]).await.unwrap();
    let expected = ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a", "DELETED a"];
    assert_eq!(changes(&mut live, 5).await, expected);
    let mut replayed = server.client.subscribe(WATCH, json!({"rv": start, "labels": "tier=gold"})).await;
    assert_eq!(changes(&mut replayed, 5).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn bookmarks_reach_idle_and_filtered_watchers_unless_refused() {
    let server = TestServer::start_with(|options| options.store.bookmark_interval = Duration::from_millis(20)).await;
    server.apply("crd.yaml", WIDGETS).await;
    let start = version(&server.client).await;
    let mut filtered = server.client.subscribe(WATCH, json!({"rv": start, "labels": "tier=gold"})).await;
    let mut refused =
        server.client.subscribe(WATCH, json!({"rv": start, "labels": "tier=gold", "bookmarks": false})).await;
    server.widget("a", "{}").await;
    let now = version(&server.client).await;
    loop {
        let event = filtered.event().await;
        assert_eq!(event["type"], "BOOKMARK");
        if event["resourceVersion"].as_str() >= now.as_str() {
            break;
        }
    }
    server.widget("b", "{tier: gold}").await;
    assert_eq!(brief(&refused.event().await), "ADDED b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_misses_nothing() {
    const ROUNDS: i64 = 100;
    const WIDGETS_COUNT: usize = 1_000;
    let server = TestServer::with_widgets().await;
    let query = "subscription($rv: String) { watchWidgets(resourceVersion: $rv) { type name resourceVersion object { spec { size } } } }";
    let start = json!({"rv": version(&server.client).await});
    let mut slow = server.client.subscribe(query, start.clone()).await;
    let mut other = server.client.subscribe(query, start).await;
    // Live before the burst begins.
    server.widget("first", "{}").await;
    assert_eq!(brief(&slow.event().await), "ADDED first");
    assert_eq!(brief(&other.event().await), "ADDED first");
    for round in 0..ROUNDS {
        server.bulk(0..WIDGETS_COUNT, round).await;
    }
    let mut last = String::new();
    for at in 0..ROUNDS as usize * WIDGETS_COUNT {
        let event = loop {
            let event = slow.event().await;
            if event["type"] != "BOOKMARK" {
                break event;
            }
        };
        let version = event["resourceVersion"].as_str().unwrap().to_owned();
        assert!(version > last, "{version} after {last}");
        assert_eq!(event["name"], format!("w{:06}", at % WIDGETS_COUNT));
        assert_eq!(event["object"]["spec"]["size"], at / WIDGETS_COUNT);
        last = version;
    }
    drop(other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_closes_cleanly() {
    let server = TestServer::with_widgets().await;
    let mut socket = server.client.subscribe(WATCH, json!({"initial": true})).await;
    assert_eq!(socket.event().await["type"], "BOOKMARK");
    server.drain();
    assert_eq!(socket.next().await, Err(1001));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_begin_is_let_go() {
    let server = TestServer::start_with(|options| options.graphql.init_timeout = Duration::from_millis(50)).await;
    let mut silent = Socket::open(&server.client.url).await;
    assert_eq!(silent.next().await, Err(4408));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_protocol_is_kept() {
    let server = TestServer::start().await;
    let url = &server.client.url;
    let init =
        json!({"type": "connection_init", "payload": {"Authorization": format!("bearer {}", server.client.token)}});

    let mut hasty = Socket::open(url).await;
    hasty.subscribe("1", "{ whoami { user } }", json!({})).await;
    assert_eq!(hasty.next().await, Err(4401));

    for payload in [json!({}), json!({"authorization": "Bearer nonsense"}), json!({"authorization": 7})] {
        let mut stranger = Socket::open(url).await;
        stranger.send(json!({"type": "connection_init", "payload": payload})).await;
        assert_eq!(stranger.next().await, Err(4403));
    }

    let mut twice = Socket::open(url).await;
    twice.send(init.clone()).await;
    assert_eq!(twice.next().await.unwrap()["type"], "connection_ack");
    twice.send(json!({"type": "ping", "payload": {"n": 1}})).await;
    assert_eq!(twice.next().await.unwrap(), json!({"type": "pong", "payload": {"n": 1}}));
    twice.send(init).await;
    assert_eq!(twice.next().await, Err(4429));

    let mut garbled = server.client.connect().await;
    garbled.send(json!({"type": "start"})).await;
    assert_eq!(garbled.next().await, Err(4400));

    let mut queries = server.client.connect().await;
    queries.subscribe("q", "{ whoami { user } }", json!({})).await;
    assert_eq!(queries.next().await.unwrap()["payload"]["data"]["whoami"]["user"], "system:admin");
    assert_eq!(queries.next().await.unwrap(), json!({"type": "complete", "id": "q"}));
    queries.subscribe("q", "{ nothing }", json!({})).await;
    assert_eq!(queries.next().await.unwrap()["type"], "error");
    queries.subscribe("w", "subscription { watchNamespaces { type } }", json!({})).await;
    queries.subscribe("w", "subscription { watchNamespaces { type } }", json!({})).await;
    assert_eq!(queries.next().await, Err(4409));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_subscriptions_share_a_connection_and_end_one_by_one() {
    let server = TestServer::with_widgets().await;
    let mut socket = server.client.connect().await;
    let query =
        "subscription($rv: String) { watchWidgets(namespace: \"default\", resourceVersion: $rv) { type name } }";
    let start = json!({"rv": version(&server.client).await});
    socket.subscribe("one", query, start.clone()).await;
    socket.subscribe("two", query, start).await;
    server.widget("a", "{}").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let message = socket.next().await.unwrap();
        assert_eq!(message["payload"]["data"]["watchWidgets"]["name"], "a");
        ids.push(message["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    assert_eq!(ids, ["one", "two"]);
    socket.send(json!({"type": "complete", "id": "one"})).await;
    socket.send(json!({"type": "ping"})).await;
    assert_eq!(socket.next().await.unwrap()["type"], "pong");
    server.widget("b", "{}").await;
    assert_eq!(socket.next().await.unwrap()["id"], "two");
    server.widget("c", "{}").await;
    assert_eq!(socket.next().await.unwrap()["id"], "two");
}
