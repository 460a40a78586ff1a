//! List-then-watch of one kind of an index.

use std::sync::Arc;

use tidegate_model::ResourceVersion;
use tokio::sync::mpsc;

use crate::attended::interrupted;
use crate::clock::Retry;
use crate::{ApiError, Fault, Item, Kind, Plane, WatchEvent};

/// What a follower of one kind hands over.
pub(crate) enum Batch {
    /// A list begins, perhaps after one that broke off.
    ListStart,
    Page(Vec<Item>),
    ListEnd(ResourceVersion),
    Events(Vec<WatchEvent>),
}

/// Watches from `from`, or lists first; for ever.
pub(crate) async fn follow(
    plane: Arc<dyn Plane>,
    kind: Kind,
    at: usize,
    mut from: Option<ResourceVersion>,
    batches: mpsc::Sender<(usize, Batch)>,
) {
    let mut retry = Retry::new(&kind.resource);
    loop {
        let error = match from {
            None => match list(&*plane, &kind, at, &batches).await {
                Ok(version) => {
                    from = version;
                    continue;
                }
                Err(error) => error,
            },
            Some(version) => watch_from(&*plane, &kind, at, &batches, version, &mut from, &mut retry).await,
        };
        if batches.is_closed() {
            return;
        }
        if error.is(Fault::Expired) {
            from = None;
        }
        interrupted!(error, %kind, "an index is interrupted: reading again");
        retry.wait().await;
    }
}

async fn list(
    plane: &dyn Plane,
    kind: &Kind,
    at: usize,
    batches: &mpsc::Sender<(usize, Batch)>,
) -> Result<Option<ResourceVersion>, ApiError> {
    let mut next: Option<String> = None;
    let _ = batches.send((at, Batch::ListStart)).await;
    loop {
        let page = plane.list(kind, next.as_deref()).await?;
        let _ = batches.send((at, Batch::Page(page.items))).await;
        next = page.next;
        if next.is_none() {
            let _ = batches.send((at, Batch::ListEnd(page.version))).await;
            return Ok(Some(page.version));
        }
    }
}

async fn watch_from(
    plane: &dyn Plane,
    kind: &Kind,
    at: usize,
    batches: &mpsc::Sender<(usize, Batch)>,
    version: ResourceVersion,
    from: &mut Option<ResourceVersion>,
    retry: &mut Retry,
) -> ApiError {
    let mut stream = match plane.watch(kind, version).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    loop {
        match stream.next().await {
            Ok(events) => {
                retry.succeeded();
                let reached = events.last().map(WatchEvent::version);
                if batches.send((at, Batch::Events(events))).await.is_err() {
                    return ApiError::new(Fault::Unavailable, "the index has ended");
                }
                *from = reached.or(*from);
            }
            Err(error) => return error,
        }
    }
}
