//! The first words with the API server: waits until it answers.

use std::time::Duration;

use http::Method;
use tokio::time::sleep;

use super::api::{Api, ApiError};
use super::obstacle::{Obstacle, ObstacleKind};
use crate::backoff::Backoff;

const RETRY_MIN: Duration = Duration::from_millis(100);
/// An API server that starts takes seconds, one that is being replaced minutes.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// A host that swallows what is sent to it is told of after this time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Every cluster has it.
const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";

/// The uid of `kube-system`, which stands for the cluster. Each obstacle is
/// shown to `waits`, and logged when it is of a new kind, not at each attempt.
pub async fn meet(api: &Api, mut waits: impl FnMut(&Obstacle)) -> Result<String, Obstacle> {
    let (mut backoff, mut told) = (Backoff::new(RETRY_MIN, RETRY_MAX), Vec::<ObstacleKind>::new());
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
        if obstacle.is_final() {
            return Err(obstacle);
        }
        waits(&obstacle);
        if !told.contains(&obstacle.kind) {
            tracing::warn!("waiting: {obstacle}");
            told.push(obstacle.kind);
        }
        sleep(backoff.next(rand::random())).await;
    }
}

async fn ask(api: &Api) -> Result<String, ApiError> {
    let namespace = api.get_within(KUBE_SYSTEM, ANSWER_TIME_MAX).await?;
    let uid = namespace["metadata"]["uid"].as_str().map(str::to_owned);
    uid.ok_or_else(|| ApiError::failed(&Method::GET, KUBE_SYSTEM, "the answer is not that of a Kubernetes API"))
}
