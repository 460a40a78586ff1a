//! Every operation, with and without the permission for it.

use serde_json::json;
use tidegate_testkit::client::Client;

use crate::support::TestServer;

const GET: &str =
    "{ resource(apiVersion: \"example.com/v1\", kind: \"Widget\", namespace: \"default\", name: \"a\") { name } }";
const GET_TYPED: &str = "{ widget(namespace: \"default\", name: \"a\") { kind } }";
const LIST: &str = "{ widgets(namespace: \"default\") { resourceVersion } }";
const LIST_ALL: &str = "{ resources(apiVersion: \"example.com/v1\", kind: \"Widget\") { resourceVersion } }";
const WATCH: &str = "subscription { watchWidgets(namespace: \"default\", sendInitialEvents: true) { type } }";
const WATCH_ALL: &str = "subscription { watchResources(apiVersion: \"example.com/v1\", kind: \"Widget\", sendInitialEvents: true) { type } }";
const STATUS: &str = "mutation { updateWidgetStatus(input: {namespace: \"default\", name: \"a\", resourceVersion: \"0\", status: {}}) { kind } }";
const STATUS_GENERIC: &str = "mutation { updateResourceStatus(input: {apiVersion: \"example.com/v1\", kind: \"Widget\", namespace: \"default\", name: \"a\", resourceVersion: \"0\", status: {}}) { name } }";
const FINALIZERS: &str = "mutation { updateWidgetFinalizers(input: {namespace: \"default\", name: \"a\", resourceVersion: \"0\"}) { kind } }";
const TOKEN: &str = "mutation { createToken(input: {namespace: \"default\", serviceAccount: \"a\"}) { id } }";
const REVOKE: &str = "mutation { revokeToken(input: {namespace: \"default\", serviceAccount: \"a\", tokenId: \"00000000-0000-4000-8000-000000000000\"}) }";

const ALL: [&str; 11] =
    [GET, GET_TYPED, LIST, LIST_ALL, WATCH, WATCH_ALL, STATUS, STATUS_GENERIC, FINALIZERS, TOKEN, REVOKE];

async fn is_forbidden(client: &Client, operation: &str) -> bool {
    if !operation.starts_with("subscription") {
        return client.code(operation, json!({})).await == "FORBIDDEN";
    }
    let message = client.subscribe(operation, json!({})).await.next().await.unwrap();
    message["payload"][0]["extensions"]["code"] == "FORBIDDEN"
}

async fn check(server: &TestServer, account: &str, rules: &str, allowed: &[&str]) {
    let client = server.account(account, rules).await;
    for operation in ALL {
        assert_eq!(is_forbidden(&client, operation).await, !allowed.contains(&operation), "{account}: {operation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_needs_its_verb() {
    let server = TestServer::with_widgets().await;
    // Neither the object nor the account exists: a refusal must not depend on it.
    let rule = |resource: &str, verb: &str| {
        format!("[{{apiGroups: [example.com, \"\"], resources: [{resource}], verbs: [{verb}]}}]")
    };
    check(&server, "nobody", "[]", &[]).await;
    check(&server, "getter", &rule("widgets", "get"), &[GET, GET_TYPED]).await;
    check(&server, "lister", &rule("widgets", "list"), &[LIST, LIST_ALL]).await;
    check(&server, "watcher", &rule("widgets", "watch"), &[WATCH, WATCH_ALL]).await;
    check(&server, "controller", &rule("widgets/status", "patch"), &[STATUS, STATUS_GENERIC]).await;
    check(&server, "finalizer", &rule("widgets/finalizers", "patch"), &[FINALIZERS]).await;
    check(&server, "issuer", &rule("serviceaccounts/token", "create"), &[TOKEN]).await;
    check(&server, "revoker", &rule("serviceaccounts/token", "delete"), &[REVOKE]).await;
    // A role of another kind's controller is worth nothing here.
    check(&server, "stranger", &rule("gadgets/status", "patch"), &[]).await;
    check(&server, "spec-writer", &rule("widgets", "\"*\""), &[GET, GET_TYPED, LIST, LIST_ALL, WATCH, WATCH_ALL]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_of_a_namespace_ends_there() {
    let server = TestServer::with_widgets().await;
    let client = server.account("local", "[]").await;
    server
        .apply(
            "role.yaml",
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: local}
rules: [{apiGroups: [example.com], resources: [widgets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: local}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: local}
subjects: [{kind: ServiceAccount, name: local, namespace: default}]
",
        )
        .await;
    for (operation, forbidden) in [(GET, false), (LIST, false), (WATCH, false), (LIST_ALL, true), (WATCH_ALL, true)] {
        assert_eq!(is_forbidden(&client, operation).await, forbidden, "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_anonymous_but_health() {
    let server = TestServer::start().await;
    for token in ["", "nonsense", "tga_nonsense"] {
        assert_eq!(server.client.with_token(token).code("{ __typename }", json!({})).await, "UNAUTHENTICATED");
        assert_eq!(
            server.client.with_token(token).code("{ __schema { queryType { name } } }", json!({})).await,
            "UNAUTHENTICATED"
        );
    }
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 401), ("/graphql", 405), ("/nothing", 404)]
    {
        let response = http.get(format!("{}{path}", server.client.url)).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
    server.client.data("{ __typename whoami { user } }", json!({})).await;
    let metrics =
        http.get(format!("{}/metrics", server.client.url)).bearer_auth(&server.client.token).send().await.unwrap();
    let text = metrics.text().await.unwrap();
    for name in ["tidegate_store_", "tidegate_graphql_requests_total"] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    let page = http.get(format!("{}/graphql", server.client.url)).header("accept", "text/html").send().await.unwrap();
    assert!(page.text().await.unwrap().contains("GraphiQL"));
}
