//! What is open ends when its token or its permission does.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_model::{GroupResource, Object, ObjectKey};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;

struct Fixture {
    identities: Arc<Identities>,
    started: Instant,
    _directory: TempDir,
}

impl Fixture {
    /// The account `shop/bot`, which may watch products in its namespace. The
    /// wall clock follows tokio's, which the test may pause.
    fn new() -> Self {
        let (directory, started) = (TempDir::new().unwrap(), Instant::now());
        let base = DateTime::from_timestamp(1_900_000_000, 0).unwrap();
        let tokens = Tokens::open(directory.path(), Clock::new(move || base + started.elapsed())).unwrap();
        let fixture = Self { identities: Arc::new(Identities::new(tokens)), started, _directory: directory };
        fixture.account(json!({"metadata": {"uid": "uid-1"}}));
        fixture.set("", "serviceaccounts", Some("shop"), "other", Some(json!({"metadata": {"uid": "uid-2"}})));
        fixture.role(&["watch"]);
        let subjects = json!([{"kind": "ServiceAccount", "name": "bot"}]);
        let bound = json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects});
        fixture.set(RBAC, "rolebindings", Some("shop"), "b", Some(bound));
        fixture
    }

    fn set(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str, fields: Option<Value>) {
        let key = ObjectKey::new(GroupResource::new(group, plural), namespace, name);
        let object = fields.map(|mut root| {
            root["metadata"]["name"] = json!(name);
            root["apiVersion"] = json!("v1");
            root["kind"] = json!("Any");
            Object::from_value(root).unwrap()
        });
        self.identities.apply([(&key, object.as_ref())]);
    }

    fn account(&self, fields: Value) {
        self.set("", "serviceaccounts", Some("shop"), "bot", Some(fields));
    }

    fn role(&self, verbs: &[&str]) {
        let rules = json!([{"verbs": verbs, "apiGroups": ["g"], "resources": ["products"]}]);
        self.set(RBAC, "roles", Some("shop"), "r", Some(json!({"rules": rules})));
    }

    fn session(&self, ttl: Duration) -> Session {
        let issued = self.identities.issue("shop", "bot", ttl).unwrap();
        self.identities.authenticate(&issued.secret).unwrap()
    }

    /// Returns when the watch has made its first check and waits.
    async fn open_watch(&self, session: &Session) -> JoinHandle<AuthError> {
        let (identities, session) = (self.identities.clone(), session.clone());
        let watch = tokio::spawn(async move { identities.until_revoked(&session, &products()).await });
        tokio::task::yield_now().await;
        watch
    }

    /// By the generation, that is, and not by the next look at the clock.
    fn assert_at_once(&self) {
        assert_eq!(self.started.elapsed(), Duration::ZERO);
    }

    fn generation(&self) -> u64 {
        *self.identities.generation().borrow()
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const HOUR: Duration = Duration::from_secs(3600);

fn products() -> Attributes {
    Attributes::new(Verb::Watch, &GroupResource::new("g", "products")).namespace(Some("shop"))
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_token_expires_and_not_before() {
    let fixture = Fixture::new();
    let error = fixture.open_watch(&fixture.session(HOUR)).await.await.unwrap();
    assert!(matches!(error, AuthError::Expired { .. }), "{error}");
    let lived = fixture.started.elapsed();
    assert!(lived >= HOUR && lived < HOUR + Duration::from_secs(1), "{lived:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_token_is_revoked() {
    let fixture = Fixture::new();
    let (session, spared) = (fixture.session(HOUR), fixture.session(2 * HOUR));
    let id = session.identity().token_id.clone().unwrap();
    let (watch, spared) = (fixture.open_watch(&session).await, fixture.open_watch(&spared).await);
    fixture.account(json!({"metadata": {"uid": "uid-1"}, "status": {"revokedTokens": [{"id": &*id}]}}));
    assert_eq!(watch.await.unwrap(), AuthError::Revoked { token_id: id.to_string() });
    fixture.assert_at_once();
    assert!(matches!(spared.await.unwrap(), AuthError::Expired { .. }), "another token of the account lives on");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_permission_goes() {
    let fixture = Fixture::new();
    let watch = fixture.open_watch(&fixture.session(HOUR)).await;
    fixture.role(&["watch", "list"]);
    fixture.role(&["list"]);
    let error = watch.await.unwrap();
    assert_eq!(error.code(), "FORBIDDEN");
    assert_eq!(
        error.to_string(),
        "system:serviceaccount:shop:bot may not watch products.g in namespace \"shop\": \
         bind a role that allows it to this user or one of its groups"
    );
    fixture.assert_at_once();
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_account_goes() {
    let fixture = Fixture::new();
    let watch = fixture.open_watch(&fixture.session(HOUR)).await;
    fixture.set("", "serviceaccounts", Some("shop"), "bot", None);
    assert!(matches!(watch.await.unwrap(), AuthError::AccountGone { .. }));
    fixture.assert_at_once();
}

#[tokio::test(start_paused = true)]
async fn an_admin_watch_goes_on() {
    let fixture = Fixture::new();
    let watch = fixture.open_watch(&Session::admin()).await;
    fixture.role(&[]);
    let waited = tokio::time::timeout(1000 * HOUR, watch).await;
    assert!(waited.is_err());
}

#[test]
fn the_generation_moves_only_with_what_matters() {
    let fixture = tokio::runtime::Runtime::new().unwrap().block_on(async { Fixture::new() });
    let before = fixture.generation();
    fixture.account(json!({"metadata": {"uid": "uid-1", "labels": {"a": "b"}}, "status": {"seen": true}}));
    fixture.role(&["watch"]);
    fixture.set("g", "products", Some("shop"), "lamp", Some(json!({})));
    fixture.set("", "serviceaccounts", Some("shop"), "never", None);
    assert_eq!(fixture.generation(), before);
    fixture.role(&["get"]);
    assert_eq!(fixture.generation(), before + 1);
    fixture.account(json!({"metadata": {"uid": "uid-3"}}));
    assert_eq!(fixture.generation(), before + 2);
}

/// A policy of 10,000 bindings is neither walked for a question nor copied
/// for a change: 10,000 of each would take minutes.
#[test]
fn a_large_policy_stays_cheap() {
    let fixture = tokio::runtime::Runtime::new().unwrap().block_on(async { Fixture::new() });
    for at in 0..10_000 {
        let subjects = json!([{"kind": "ServiceAccount", "namespace": "shop", "name": format!("bot-{at}")}]);
        let bound = json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects});
        fixture.set(RBAC, "rolebindings", Some(&format!("ns-{}", at % 500)), &format!("b-{at}"), Some(bound));
    }
    let session = Session::internal(Identity::service_account("shop", "bot"));
    assert!((0..10_000).all(|_| fixture.identities.allows(&session, &products())));
}
