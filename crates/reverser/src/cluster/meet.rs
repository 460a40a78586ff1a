//! The first words with the API server: waits until it answers.

use std::time::Duration;

use http::Method;
use tokio::time::{Instant, sleep};

use super::api::{Api, ApiError};
use super::obstacle::{Healing, Obstacle, ObstacleKind};
use crate::backoff::Backoff;

const RETRY_MIN: Duration = Duration::from_millis(100);
/// An API server that starts takes seconds, one that is being replaced minutes.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// A host that swallows what is sent to it is told of after this time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// What [`Healing::Soon`] means. An API server looks for the issuer of its OIDC
/// tokens every 10 s, and asks a webhook about a token for some 10 s before it
/// refuses it: three of these.
const REFUSED_TIME_MAX: Duration = Duration::from_secs(30);
/// Every cluster has it.
const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";

/// The uid of `kube-system`, which stands for the cluster. Each obstacle is
/// shown to `waits`, and logged when it is of a new kind, not at each attempt.
pub async fn meet(api: &Api, mut waits: impl FnMut(&Obstacle)) -> Result<String, Obstacle> {
    let mut backoff = Backoff::new(RETRY_MIN, RETRY_MAX);
    let (mut told, mut patience) = (Vec::<ObstacleKind>::new(), Patience::default());
    loop {
        let error = match ask(api).await {
            Ok(uid) => {
                if !told.is_empty() {
                    tracing::info!(address = api.address(), "the API server answers");
                }
                return Ok(uid);
            }
            Err(error) => error,
        };
        let obstacle = Obstacle::new(api, &error);
        if patience.is_over(obstacle.healing, Instant::now()) {
            return Err(obstacle);
        }
        waits(&obstacle);
        if !told.contains(&obstacle.kind) {
            tell(&obstacle);
            told.push(obstacle.kind);
        }
        sleep(backoff.next(rand::random())).await;
    }
}

fn tell(obstacle: &Obstacle) {
    match obstacle.healing {
        Healing::Soon => {
            tracing::warn!("waiting for {} s, then ending: {obstacle}", REFUSED_TIME_MAX.as_secs());
        }
        Healing::Possible | Healing::Never => tracing::warn!("waiting: {obstacle}"),
    }
}

/// Since when there was nothing but what should heal soon.
#[derive(Default)]
struct Patience(Option<Instant>);

impl Patience {
    fn is_over(&mut self, healing: Healing, now: Instant) -> bool {
        match healing {
            Healing::Never => true,
            // The server is not what it was: it starts, or is being replaced.
            Healing::Possible => {
                self.0 = None;
                false
            }
            Healing::Soon => now.duration_since(*self.0.get_or_insert(now)) >= REFUSED_TIME_MAX,
        }
    }
}

async fn ask(api: &Api) -> Result<String, ApiError> {
    let namespace = api.get_within(KUBE_SYSTEM, ANSWER_TIME_MAX).await?;
    let uid = namespace["metadata"]["uid"].as_str().map(str::to_owned);
    uid.ok_or_else(|| ApiError::failed(&Method::GET, KUBE_SYSTEM, "the answer is not that of a Kubernetes API"))
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;

    use super::*;
    use crate::cluster::Access;

    /// A server that gives these answers, each for so many seconds, and then its uid.
    fn server(script: &'static [(u64, u16)], access: Access) -> Api {
        let started = Instant::now();
        let answer = tower::service_fn(move |_: Request<Body>| {
            let mut until = Duration::ZERO;
            let status = script.iter().find_map(|(seconds, status)| {
                until += Duration::from_secs(*seconds);
                (started.elapsed() < until).then_some(*status)
            });
            let body = r#"{"metadata": {"uid": "u"}}"#.as_bytes().to_vec();
            std::future::ready(Response::builder().status(status.unwrap_or(200)).body(Body::from(body)))
        });
        Api::new(kube::Client::new(answer, "default"), "https://test", access).of_user(Some("ann".into()))
    }

    async fn check(script: &'static [(u64, u16)], access: Access, expected: Result<(), u64>) {
        let started = Instant::now();
        let met = meet(&server(script, access), |_| {}).await.map(drop);
        let met = met.map_err(|obstacle| {
            let text = obstacle.to_string();
            assert!(text.contains("the credentials of the user ann in the kubeconfig"), "{text}");
            // It notices at an attempt.
            let after_s = started.elapsed().saturating_sub(RETRY_MAX).as_secs();
            after_s..=started.elapsed().as_secs()
        });
        let is_it = match (&met, expected) {
            (Err(between_s), Err(at_s)) => between_s.contains(&at_s),
            (met, expected) => met.is_ok() == expected.is_ok(),
        };
        assert!(is_it, "{script:?} {access:?}: {met:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_for_a_moment_is_not_refused() {
        use Access::{Fixed, Pod, Renewed};
        check(&[], Fixed, Ok(())).await;
        check(&[(25, 401)], Fixed, Ok(())).await;
        check(&[(3_600, 401)], Fixed, Err(30)).await;
        // It starts again and again: what counts is how long it refuses without a break.
        check(&[(20, 401), (10, 503), (20, 401), (60, 500), (25, 401)], Fixed, Ok(())).await;
        check(&[(60, 503), (3_600, 401)], Fixed, Err(90)).await;
        for access in [Renewed, Pod] {
            check(&[(3_600, 401)], access, Ok(())).await;
        }
    }
}
