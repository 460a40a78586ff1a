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

#[tokio::test(flavor = "multi_thread")]
async fn hostile_queries_cost_nothing() {
    let server = TestServer::start().await;
    let chain: String =
        (0..40).map(|at| format!("fragment F{at} on Query {{ ...F{} ...F{} }} ", at + 1, at + 1)).collect();
    let doubling = format!("{{ ...F0 }} {chain} fragment F40 on Query {{ whoami {{ user }} }}");
    assert_eq!(server.client.code(&doubling, json!({})).await, "TOO_LARGE");
    assert_eq!(server.client.code(&"{ a ".repeat(20_000), json!({})).await, "TOO_LARGE");
    let long = "x".repeat(70_000);
    let get = "query($name: String!) { namespace(name: $name) { kind } }";
    assert_eq!(server.client.code(get, json!({"name": long})).await, "BAD_REQUEST");
    let mut socket = server.client.subscribe(get, json!({"name": long})).await;
    assert_eq!(socket.next().await.unwrap()["payload"]["errors"][0]["extensions"]["code"], "BAD_REQUEST");
    let watch = "subscription($ns: String!) { watchProducts(namespace: $ns) { type } }";
    let mut socket = server.client.subscribe(watch, json!({"ns": long})).await;
    assert_eq!(socket.ending().await, "BAD_REQUEST");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_a_size() {
    let server = TestServer::start_with(|options| options.graphql.answer_bytes_max = 20_000).await;
    server.apply("crd.yaml", crate::support::WIDGETS).await;
    server.bulk(0..100, 1).await;
    let one = "{ widgets(first: 10) { nodes { metadata { name uid labels annotations } } } }";
    assert_eq!(server.client.code(one, json!({})).await, "OK");
    let repeated: String = (0..60).map(|at| format!("m{at}: metadata {{ name uid }} ")).collect();
    assert_eq!(
        server.client.code(&format!("{{ widgets {{ nodes {{ {repeated} }} }} }}"), json!({})).await,
        "TOO_LARGE"
    );
    let aliased: String = (0..40).map(|at| format!("w{at}: widgets {{ nodes {{ metadata {{ name }} }} }} ")).collect();
    assert_eq!(server.client.code(&format!("{{ {aliased} }}"), json!({})).await, "TOO_LARGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_text_is_checked_as_the_first_time() {
    let server = TestServer::with_widgets().await;
    server.widget("a", "{}").await;
    let query = "mutation($input: UpdateStatusInput!) { updateWidgetStatus(input: $input) { kind } }";
    let input = async |extra: &str| {
        let mut input = json!({"namespace": "default", "name": "a", "resourceVersion": server.get("a").await["resourceVersion"], "status": {}});
        if !extra.is_empty() {
            input[extra] = json!({});
        }
        json!({"input": input})
    };
    for _ in 0..2 {
        assert_eq!(server.client.code(query, input("spec").await).await, "SPEC_IS_GIT_OWNED");
        assert_eq!(server.client.code(query, input("nothing").await).await, "BAD_REQUEST");
        assert_eq!(server.client.code(query, input("").await).await, "OK");
    }
    let list = "query($first: Int) { widgets(first: $first) { resourceVersion } }";
    for (first, code) in [(json!(1), "OK"), (json!(1_u64 << 40), "BAD_REQUEST"), (json!("1"), "BAD_REQUEST")] {
        assert_eq!(server.client.code(list, json!({"first": first})).await, code, "{first}");
    }
}
