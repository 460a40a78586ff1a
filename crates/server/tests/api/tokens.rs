//! Tokens that end, and what ends with them.

use serde_json::json;
use tidegate_model::{GroupResource, ObjectKey};

use crate::support::{TestServer, WIDGETS};

const READER: &str = "[{apiGroups: [example.com], resources: [widgets], verbs: [get, list, watch]}]";
const WATCH: &str = "subscription { watchWidgets(sendInitialEvents: true) { initialEventsEnd } }";
const REVOKE: &str = "mutation($account: String!, $id: String!) { revokeToken(input: {namespace: \"default\", serviceAccount: $account, tokenId: $id}) }";

fn key(plural: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    let group = if plural == "serviceaccounts" { "" } else { "rbac.authorization.k8s.io" };
    ObjectKey::new(GroupResource::new(group, plural), namespace, name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_ends_its_watches_and_others_stay() {
    let server = TestServer::with_widgets().await;
    server.account("reader", READER).await;
    let ((kept, _), (revoked, id)) = (server.token("reader").await, server.token("reader").await);
    let mut good = server.client.with_token(&kept).subscribe(WATCH, json!({})).await;
    let mut bad = server.client.with_token(&revoked).subscribe(WATCH, json!({})).await;
    good.event().await;
    bad.event().await;
    server.client.data(REVOKE, json!({"account": "reader", "id": id})).await;
    assert_eq!(bad.ending().await, "UNAUTHENTICATED");
    assert_eq!(server.client.with_token(&revoked).code("{ whoami { user } }", json!({})).await, "UNAUTHENTICATED");
    assert_eq!(server.client.with_token(&kept).code("{ whoami { user } }", json!({})).await, "OK");
    // Again, and also after a restart.
    server.client.data(REVOKE, json!({"account": "reader", "id": id})).await;
    drop((good, bad));
    let server = TestServer::start_in(server.stop().await, |_| {}).await;
    assert_eq!(server.client.with_token(&revoked).code("{ whoami { user } }", json!({})).await, "UNAUTHENTICATED");
    assert_eq!(server.client.with_token(&kept).code("{ whoami { user } }", json!({})).await, "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_permission_ends_watches() {
    let server = TestServer::with_widgets().await;
    let reader = server.account("reader", READER).await;
    let mut socket = reader.subscribe(WATCH, json!({})).await;
    socket.event().await;
    // The role no longer says watch.
    server.account("reader", "[{apiGroups: [example.com], resources: [widgets], verbs: [get]}]").await;
    assert_eq!(socket.ending().await, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_has_no_tokens() {
    let server = TestServer::start().await;
    server
        .project(
            &[
                ("crd.yaml", WIDGETS),
                ("account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: passing}\n"),
            ],
            &[],
        )
        .await
        .unwrap();
    let (token, _) = server.token("passing").await;
    let client = server.client.with_token(&token);
    assert_eq!(client.code("{ whoami { user } }", json!({})).await, "OK");
    server.project(&[], &[("account.yaml", key("serviceaccounts", Some("default"), "passing"))]).await.unwrap();
    assert_eq!(client.code("{ whoami { user } }", json!({})).await, "UNAUTHENTICATED");
    // Made anew, it is another account.
    server
        .project(&[("account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: passing}\n")], &[])
        .await
        .unwrap();
    assert_eq!(client.code("{ whoami { user } }", json!({})).await, "UNAUTHENTICATED");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_made_within_bounds() {
    let server = TestServer::start().await;
    server.apply("a.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n").await;
    let create = |account: &str, seconds: i64| {
        format!(
            "mutation {{ createToken(input: {{namespace: \"default\", serviceAccount: \"{account}\", expiresInSeconds: {seconds}}}) {{ id expiresAt }} }}"
        )
    };
    for (query, code) in [
        (create("a", 3600), "OK"),
        (create("a", 1), "BAD_REQUEST"),
        (create("a", 1 << 40), "BAD_REQUEST"),
        (create("none", 3600), "NOT_FOUND"),
    ] {
        assert_eq!(server.client.code(&query, json!({})).await, code, "{query}");
    }
    let unknown = "00000000-0000-4000-8000-000000000000";
    assert_eq!(server.client.code(REVOKE, json!({"account": "none", "id": unknown})).await, "NOT_FOUND");
    assert_eq!(server.client.code(REVOKE, json!({"account": "a", "id": "a typing error"})).await, "BAD_REQUEST");
}
