//! A request's body with two ends: a size and a time.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, Request};
use http_body_util::Limited;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use super::error::HttpError;
use super::limits::Limits;

/// Refuses a body that announces too much, and guards every other.
pub(super) fn guard(request: Request<Body>, limits: &Limits) -> Result<Request<Body>, HttpError> {
    if announced_bytes(request.headers()).is_some_and(|bytes| bytes > limits.body_bytes_max as u64) {
        return Err(HttpError::too_large(limits.body_bytes_max));
    }
    Ok(request.map(|body| {
        let limited = Limited::new(body, limits.body_bytes_max);
        Body::new(Timed { body: Box::pin(limited), timeout: limits.body_read_timeout, deadline: None })
    }))
}

fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[derive(Debug, thiserror::Error)]
#[error("the body did not arrive within {} s", .0.as_secs())]
struct BodyTimeout(Duration);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Gives the whole body `timeout`, from when it is first asked for.
struct Timed {
    body: Pin<Box<Limited<Body>>>,
    timeout: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = self.body.as_mut().poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let timeout = self.timeout;
        // A body that is already here never needs the timer.
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        deadline.as_mut().poll(cx).map(|()| Some(Err(BodyTimeout(timeout).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
