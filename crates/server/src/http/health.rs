//! `/livez`, also as `/healthz`: the process lives. `/readyz`: it can serve, or why not.

use std::sync::{PoisonError, RwLock};

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What has to hold for the process to be sent requests.
#[derive(Default)]
pub struct Checks(RwLock<Vec<(&'static str, Check)>>);

#[derive(Serialize, Debug)]
struct Readiness {
    ready: bool,
    checks: Vec<CheckResult>,
}

#[derive(Serialize, Debug)]
struct CheckResult {
    name: &'static str,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Checks {
    /// `check` is asked for each `/readyz`: it looks at a state and does not
    /// wait. Its reason is public.
    pub fn register(&self, name: &'static str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push((name, Box::new(check)));
    }

    fn run(&self) -> Readiness {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let run = |(name, check): &(&'static str, Check)| {
            let reason = check().err();
            CheckResult { name, ready: reason.is_none(), reason }
        };
        let checks: Vec<_> = checks.iter().map(run).collect();
        Readiness { ready: checks.iter().all(|check| check.ready), checks }
    }

    /// As JSON to whom asks for it, else as a list for people.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let readiness = self.run();
        let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let mut response = if accepts.is_some_and(|accept| accept.contains("application/json")) {
            (status, Json(&readiness)).into_response()
        } else {
            (status, readiness.text()).into_response()
        };
        response.extensions_mut().insert(AnswerIsFinal);
        response
    }
}

/// Marks a failure whose body stays as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerIsFinal;

impl Readiness {
    fn text(&self) -> String {
        let line = |check: &CheckResult| match &check.reason {
            None => format!("[+] {}: ok\n", check.name),
            Some(reason) => format!("[-] {}: {reason}\n", check.name),
        };
        let mut text: String = self.checks.iter().map(line).collect();
        text.push_str(if self.ready { "ready\n" } else { "not ready\n" });
        text
    }
}
