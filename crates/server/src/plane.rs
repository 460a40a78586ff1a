//! The API service as the controllers' plane, in process: the same
//! operations, permissions and errors as over the network.

use async_trait::async_trait;
use serde_json::Value;
use tidegate_model::{EventType, ObjectKey, ResourceVersion};
use tidegate_runtime::{
    ApiError as PlaneError, Fault, Fence as PlaneFence, Item, Kind, Lease, LeaseRequest, ListPage, Plane, Precondition,
    Source, StateChange, StateRow, WatchEvent, WatchStream,
};
use tidegate_store::WatchItem;

use crate::api::error::{ApiError, Code};
use crate::api::kind_ref::KindRef;
use crate::api::{
    Api, ApiWatch, CONTROLLER_MANAGER, Fence, FinalizersWrite, LeaseWrite, ListQuery, StatusWrite, WatchQuery,
};
use crate::identity::{Identity, Session};

pub struct LocalPlane {
    api: Api,
    session: Session,
}

impl LocalPlane {
    /// As the controllers' own account.
    pub fn new(api: Api) -> Self {
        let (namespace, name) = CONTROLLER_MANAGER;
        Self { api, session: Session::internal(Identity::service_account(namespace, name)) }
    }

    fn kind(&self, kind: &Kind) -> Result<KindRef, PlaneError> {
        Ok(self.api.kind(&kind.api_version, &kind.kind)?)
    }
}

#[async_trait]
impl Source for LocalPlane {
    async fn list(&self, kind: &Kind, after: Option<&str>) -> Result<ListPage, PlaneError> {
        let query = ListQuery { after: after.map(Into::into), ..ListQuery::default() };
        let page = self.api.list(&self.session, &self.kind(kind)?, query).await?;
        Ok(ListPage {
            version: page.version,
            items: page.items.into_iter().map(Into::into).collect(),
            next: page.end_cursor,
        })
    }

    async fn watch(&self, kind: &Kind, after: ResourceVersion) -> Result<Box<dyn WatchStream>, PlaneError> {
        let query = WatchQuery { resource_version: Some(after.to_string()), ..WatchQuery::default() };
        Ok(Box::new(Stream(self.api.watch(&self.session, self.kind(kind)?, &query)?)))
    }
}

struct Stream(ApiWatch);

#[async_trait]
impl WatchStream for Stream {
    async fn next(&mut self) -> Result<Vec<WatchEvent>, PlaneError> {
        let items = self.0.next().await?;
        Ok(items.into_iter().map(|item| event(&self.0.kind, item)).collect())
    }
}

fn event(kind: &KindRef, item: WatchItem) -> WatchEvent {
    match item {
        WatchItem::Bookmark { version, .. } => WatchEvent::Bookmark(version),
        WatchItem::Event { kind: what, event } => {
            let item = Item { key: event.key.clone(), version: event.version, json: kind.serve(event.object.clone()) };
            match what {
                EventType::Added => WatchEvent::Added(item),
                EventType::Modified => WatchEvent::Modified(item),
                EventType::Deleted => WatchEvent::Deleted(item),
            }
        }
    }
}

#[async_trait]
impl Plane for LocalPlane {
    async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Item>, PlaneError> {
        let found = self.api.get(&self.session, &self.kind(kind)?, key.namespace.as_deref(), &key.name)?;
        Ok(found.map(Into::into))
    }

    async fn patch_status(&self, kind: &Kind, at: &Precondition, patch: Value) -> Result<Item, PlaneError> {
        let write = StatusWrite {
            namespace: at.key.namespace.as_deref().map(Into::into),
            name: at.key.name.to_string(),
            resource_version: Some(at.version.to_string()),
            patch,
        };
        let fence = at.fence.as_ref().map(fence);
        Ok(self.api.update_status_fenced(&self.session, &self.kind(kind)?, write, fence.as_ref()).await?.into())
    }

    async fn patch_finalizers(
        &self,
        kind: &Kind,
        at: &Precondition,
        add: &[String],
        remove: &[String],
    ) -> Result<Option<Item>, PlaneError> {
        let write = FinalizersWrite {
            namespace: at.key.namespace.as_deref().map(Into::into),
            name: at.key.name.to_string(),
            resource_version: Some(at.version.to_string()),
            add: add.to_vec(),
            remove: remove.to_vec(),
        };
        let fence = at.fence.as_ref().map(fence);
        let item = self.api.update_finalizers_fenced(&self.session, &self.kind(kind)?, write, fence.as_ref()).await?;
        Ok(item.map(Into::into))
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Lease, PlaneError> {
        let write = match request {
            LeaseRequest::Acquire { namespace, name, holder, duration } => LeaseWrite::Acquire {
                namespace: namespace.to_string(),
                name: name.to_string(),
                holder: holder.to_string(),
                duration: *duration,
            },
            LeaseRequest::Renew { fence: held, duration } => {
                LeaseWrite::Renew { fence: fence(held), duration: *duration }
            }
            LeaseRequest::Release { fence: held } => LeaseWrite::Release { fence: fence(held) },
        };
        let state = self.api.lease(&self.session, write).await?;
        Ok(Lease { holder: state.holder.into(), transitions: state.transitions })
    }

    async fn state_read(
        &self,
        controller: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Vec<StateRow>, PlaneError> {
        let rows = self.api.controller_state(&self.session, controller, prefix, after)?;
        Ok(rows.into_iter().map(|row| StateRow { name: row.name, value: row.value }).collect())
    }

    async fn state_get(&self, controller: &str, names: &[String]) -> Result<Vec<StateRow>, PlaneError> {
        let rows = self.api.controller_rows(&self.session, controller, names.to_vec())?;
        Ok(rows.into_iter().map(|row| StateRow { name: row.name, value: row.value }).collect())
    }

    async fn state_write(
        &self,
        controller: &str,
        held: Option<&PlaneFence>,
        changes: Vec<StateChange>,
    ) -> Result<(), PlaneError> {
        let changes = changes.into_iter().map(|change| (change.name, change.value)).collect();
        let held = held.map(fence);
        Ok(self.api.update_controller_state(&self.session, controller, held.as_ref(), changes).await?)
    }
}

fn fence(fence: &PlaneFence) -> Fence {
    Fence {
        namespace: fence.namespace.to_string(),
        name: fence.name.to_string(),
        holder: fence.holder.to_string(),
        transitions: fence.transitions,
    }
}

impl From<crate::api::Item> for Item {
    fn from(item: crate::api::Item) -> Self {
        Self { key: item.key, version: item.version, json: item.json }
    }
}

/// The one place where the server's codes become what a controller does.
impl From<ApiError> for PlaneError {
    fn from(error: ApiError) -> Self {
        let fault = match error.code {
            Code::Conflict => Fault::Conflict,
            Code::NotFound => Fault::NotFound,
            Code::KindNotFound => Fault::KindNotFound,
            Code::Forbidden => Fault::Forbidden,
            Code::Unauthenticated => Fault::Unauthenticated,
            Code::LeaseLost => Fault::LeaseLost,
            Code::WatchExpired | Code::ListExpired | Code::FutureResourceVersion => Fault::Expired,
            Code::TooLarge => Fault::TooLarge,
            Code::BadRequest
            | Code::Invalid
            | Code::PreconditionRequired
            | Code::SpecIsGitOwned
            | Code::InvalidResourceVersion => Fault::Invalid,
            Code::RateLimited | Code::Unavailable | Code::Internal => Fault::Unavailable,
        };
        Self::new(fault, error.message)
    }
}
