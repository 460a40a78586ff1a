//! One subscription: a watch, written as frames.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use tidegate_model::EventType;
use tidegate_store::{Event, WatchItem};

use super::Graphql;
use super::arguments::Arguments;
use super::encode::{EventPlan, Shown};
use super::execute::{Caller, Ready, kind_of};
use super::frames::{FrameId, FrameKey};
use super::protocol::next_head;
use super::selection::RootCall;
use super::types::Root;
use crate::api::error::ApiError;
use crate::api::{ApiWatch, WatchQuery};

pub struct Subscription {
    watch: ApiWatch,
    plan: EventPlan,
    /// Up to the event, and after it.
    head: String,
    frame_id: Arc<FrameId>,
    bookmarks: Bookmarks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bookmarks {
    All,
    /// The end of the initial list is always told.
    InitialEndOnly,
}

impl Graphql {
    pub fn subscribe(&self, ready: &Ready, id: &str, caller: Caller<'_>) -> Result<Subscription, ApiError> {
        let compiler = ready.compiler();
        let calls = compiler.root_calls("Subscription");
        let [call] = calls.as_slice() else {
            return Err(ApiError::bad_request(
                "a subscription has exactly one field: open one subscription for each watch",
            ));
        };
        let name = call.field.node.name.node.as_str();
        let field = ready
            .state
            .types
            .root(Root::Subscription, name)
            .ok_or_else(|| ApiError::bad_request(format!("`{name}` cannot be subscribed to")))?;
        let selection = compiler
            .compile_result(call, &field.result)
            .ok_or_else(|| ApiError::bad_request("select fields of the event"))?;
        let mut arguments = Arguments::of(call.field, compiler.variables);
        let kind = kind_of(caller.api, field, &mut arguments)?;
        let bookmarks =
            if arguments.flag("allowBookmarks", true)? { Bookmarks::All } else { Bookmarks::InitialEndOnly };
        let query = WatchQuery {
            namespace: arguments.text("namespace")?,
            label_selector: arguments.text("labelSelector")?,
            field_selector: arguments.text("fieldSelector")?,
            resource_version: arguments.text("resourceVersion")?,
            send_initial_events: arguments.flag("sendInitialEvents", false)?,
        };
        let frame_id = self.frame_ids.get(FrameKey {
            subscription_id: id.into(),
            response_key: call.response_key.into(),
            api_version: kind.api_version.clone(),
            kind: (*kind.kind.kind).into(),
            selection: selection.clone(),
        });
        let watch = caller.api.watch(caller.session, kind, &query)?;
        Ok(Subscription { watch, plan: EventPlan::new(selection), head: head(id, call), frame_id, bookmarks })
    }
}

fn head(id: &str, call: &RootCall<'_>) -> String {
    format!(r#"{}{{"data":{{"{}":"#, next_head(id), call.response_key)
}

const TAIL: &[u8] = b"}}}";

impl Subscription {
    /// The next frames; an error is the end. Cancel safe.
    pub async fn next(&mut self) -> Result<Vec<Utf8Bytes>, ApiError> {
        loop {
            let items = self.watch.next().await?;
            let frames: Vec<_> = items.iter().filter_map(|item| self.frame(item)).collect();
            if !frames.is_empty() {
                return Ok(frames);
            }
        }
    }

    fn frame(&self, item: &WatchItem) -> Option<Utf8Bytes> {
        let bytes = match item {
            WatchItem::Event { kind, event } => {
                event.memo(self.frame_id.number(*kind), |event| self.event(*kind, event))
            }
            WatchItem::Bookmark { version, initial_end } if *initial_end || self.bookmarks == Bookmarks::All => {
                self.write(256, |out| self.plan.write_bookmark(&self.watch.kind, *version, *initial_end, out))
            }
            WatchItem::Bookmark { .. } => return None,
        };
        Some(Utf8Bytes::try_from(bytes).expect("frames are JSON text"))
    }

    fn event(&self, change: EventType, event: &Event) -> Bytes {
        let kind = &self.watch.kind;
        let json = kind.serve(event.object.clone());
        let shown = Shown { kind, key: &event.key, version: event.version, json: &json };
        self.write(json.len() + 256, |out| self.plan.write_change(change, shown, out))
    }

    fn write(&self, capacity: usize, body: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut out = Vec::with_capacity(self.head.len() + capacity + TAIL.len());
        out.extend_from_slice(self.head.as_bytes());
        body(&mut out);
        out.extend_from_slice(TAIL);
        out.into()
    }
}
