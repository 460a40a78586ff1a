//! The routes around the API, and what every answer has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::stream;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_model::{GroupResource, Object, ObjectKey};
use tower::ServiceExt as _;

use super::{Checks, Limits, RequestId, Shell, Shutdown};
use crate::identity::{Clock, Identities, TOKEN_TTL_DEFAULT, Tokens};
use crate::metrics::Metrics;

const BODY_BYTES_MAX: usize = 1000;

struct Fixture {
    shell: Shell,
    router: Router,
    admin: String,
    _directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let tokens = Tokens::open(directory.path(), Clock::system()).unwrap();
        let admin = std::fs::read_to_string(tokens.admin_token_path()).unwrap().trim().to_owned();
        let limits =
            Limits { body_bytes_max: BODY_BYTES_MAX, body_read_timeout: Duration::from_secs(5), ..Limits::default() };
        let shell = Shell {
            identities: Arc::new(Identities::new(tokens)),
            metrics: Arc::default(),
            checks: Arc::default(),
            shutdown: Shutdown::default(),
            limits,
        };
        let inner = Router::new()
            .route("/echo", post(async |body: Bytes| body))
            .route("/page", get(async || axum::response::Html("<p>")))
            .route(
                "/id",
                get(async |request: Request<Body>| request.extensions().get::<RequestId>().unwrap().to_string()),
            )
            .route("/current", get(async || RequestId::current().unwrap().to_string()))
            .route(
                "/panic",
                get(async || {
                    if true {
                        panic!("as asked")
                    }
                }),
            );
        Self { router: shell.clone().wrap(inner), shell, admin, _directory: directory }
    }

    async fn call(&self, request: Request<Body>) -> (Response<()>, String) {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        (Response::from_parts(parts, ()), text)
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (Response<()>, String) {
        let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        self.call(request.body(Body::empty()).unwrap()).await
    }

    fn set(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str, mut root: Value) {
        root["metadata"]["name"] = json!(name);
        root["apiVersion"] = json!("v1");
        root["kind"] = json!("Any");
        let key = ObjectKey::new(GroupResource::new(group, plural), namespace, name);
        self.shell.identities.apply([(&key, Some(&Object::from_value(root).unwrap()))]);
    }
}

fn code(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("not JSON: {body}"));
    body["errors"][0]["extensions"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn health_is_anonymous_and_readiness_has_reasons() {
    let fixture = Fixture::new();
    let is_open = Arc::new(AtomicBool::new(false));
    fixture.shell.checks.register("store", {
        let is_open = is_open.clone();
        move || if is_open.load(Ordering::SeqCst) { Ok(()) } else { Err("still replaying".into()) }
    });
    assert_eq!(fixture.get("/healthz", &[]).await.1, "ok\n");
    let (response, text) = fixture.get("/readyz", &[]).await;
    assert_eq!(response.status(), 503);
    assert_eq!(text, "[+] shutdown: ok\n[-] store: still replaying\nnot ready\n");
    let (response, text) = fixture.get("/readyz", &[("accept", "application/json")]).await;
    assert_eq!(response.status(), 503);
    let expected = json!({"ready": false, "checks": [
        {"name": "shutdown", "ready": true}, {"name": "store", "ready": false, "reason": "still replaying"}]});
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);

    is_open.store(true, Ordering::SeqCst);
    assert_eq!(fixture.get("/readyz", &[]).await.0.status(), 200);
    fixture.shell.shutdown.leave();
    let (response, text) = fixture.get("/readyz", &[]).await;
    assert_eq!((response.status().as_u16(), text.contains("shutting down")), (503, true));
    assert_eq!(fixture.get("/healthz", &[]).await.0.status(), 200);
}

#[tokio::test]
async fn metrics_need_a_permission() {
    let fixture = Fixture::new();
    fixture.set("", "serviceaccounts", Some("shop"), "bot", json!({"metadata": {"uid": "u"}}));
    let token = fixture.shell.identities.issue("shop", "bot", TOKEN_TTL_DEFAULT).unwrap().secret;
    let bearer = format!("Bearer {token}");
    let admin = format!("Bearer {}", fixture.admin);
    let status = async |headers: &[(&str, &str)]| {
        let (response, text) = fixture.get("/metrics", headers).await;
        assert!(!text.contains(&token), "the token is repeated");
        response.status().as_u16()
    };
    assert_eq!(status(&[]).await, 401);
    assert_eq!(status(&[("authorization", "Basic eDp5")]).await, 401);
    assert_eq!(status(&[("authorization", "Bearer nonsense")]).await, 401);
    assert_eq!(status(&[("authorization", &bearer)]).await, 403);
    assert_eq!(status(&[("authorization", &admin)]).await, 200);

    let rbac = "rbac.authorization.k8s.io";
    fixture.set(
        rbac,
        "clusterroles",
        None,
        "r",
        json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}),
    );
    let bound = json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "bot"}]});
    fixture.set(rbac, "clusterrolebindings", None, "b", bound);
    let (response, text) = fixture.get("/metrics", &[("authorization", &bearer)]).await;
    assert_eq!(response.status(), 200);
    assert!(text.contains(r#"tidegate_auth_refusals_total{code="FORBIDDEN"} 1"#), "{text}");
    assert!(text.contains(r#"tidegate_auth_refusals_total{code="UNAUTHENTICATED"} 3"#), "{text}");
    assert!(text.contains(r#"tidegate_http_requests_total{route="/metrics",status="401"} 3"#), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn every_answer_has_an_id_and_careful_headers() {
    let fixture = Fixture::new();
    let (response, text) = fixture.get("/id", &[("x-request-id", "mine-1")]).await;
    assert_eq!((text.as_str(), response.headers()["x-request-id"].to_str().unwrap()), ("mine-1", "mine-1"));
    let (_, text) = fixture.get("/current", &[("x-request-id", "mine-2")]).await;
    assert_eq!(text, "mine-2");
    let (response, text) = fixture.get("/id", &[("x-request-id", "not sane")]).await;
    assert_eq!(text, response.headers()["x-request-id"].to_str().unwrap());
    assert_ne!(text, "not sane");
    for (path, policy) in [("/id", "default-src 'none'; frame-ancestors 'none'"), ("/page", "frame-ancestors 'none'")] {
        let (response, _) = fixture.get(path, &[]).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-security-policy"), policy);
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn errors_have_one_shape() {
    let fixture = Fixture::new();
    for (method, path, status, expected) in [
        (Method::GET, "/nothing?token=secret", 404, "NOT_FOUND"),
        (Method::DELETE, "/healthz", 405, "BAD_REQUEST"),
        (Method::GET, "/metrics", 401, "UNAUTHENTICATED"),
        (Method::GET, "/panic", 500, "INTERNAL"),
    ] {
        let request = Request::builder().method(method).uri(path).header("x-request-id", "id-7").body(Body::empty());
        let (response, body) = fixture.call(request.unwrap()).await;
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(code(&body), expected, "{path}");
        let parsed: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(parsed["errors"][0]["extensions"]["requestId"], "id-7", "{path}");
        assert_eq!(response.headers()["content-type"], "application/json");
        assert!(!body.contains("secret") && !body.contains("as asked"), "{body}");
    }
    let (response, body) = fixture.get("/nothing", &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(body.contains("/graphql"), "a hint: {body}");
}

#[tokio::test]
async fn the_root_leads_a_browser_to_the_page_and_tells_a_program_where_things_are() {
    let fixture = Fixture::new();
    let (response, _) = fixture.get("/", &[("accept", "text/html,application/xhtml+xml")]).await;
    assert_eq!((response.status().as_u16(), &response.headers()["location"]), (307, &"/graphql".parse().unwrap()));
    let (response, body) = fixture.get("/", &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(body.contains("/graphql"), "a hint: {body}");
}

#[tokio::test]
async fn a_body_has_a_limit_whether_announced_or_not() {
    let fixture = Fixture::new();
    for (bytes, is_good) in [(0, true), (BODY_BYTES_MAX, true), (BODY_BYTES_MAX + 1, false)] {
        let announced = Body::from(vec![b'a'; bytes]);
        let chunks: Vec<Result<_, std::io::Error>> = vec![b'a'; bytes].chunks(7).map(|c| Ok(c.to_vec())).collect();
        let streamed = Body::from_stream(stream::iter(chunks));
        for body in [announced, streamed] {
            let mut request = Request::post("/echo").body(body).unwrap();
            if let Some(exact) = hyper::body::Body::size_hint(request.body()).exact() {
                request.headers_mut().insert("content-length", exact.into());
            }
            let (response, body) = fixture.call(request).await;
            assert_eq!(response.status().is_success(), is_good, "{bytes}");
            if !is_good {
                assert_eq!((response.status().as_u16(), code(&body).as_str()), (413, "TOO_LARGE"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up() {
    let fixture = Fixture::new();
    let endless = Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let (response, body) = fixture.call(Request::post("/echo").body(endless).unwrap()).await;
    assert_eq!(response.status(), 400);
    assert!(body.contains("did not arrive within 5 s"), "{body}");
}

#[test]
fn checks_and_metrics_are_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<(Checks, Metrics, Shell)>();
}
