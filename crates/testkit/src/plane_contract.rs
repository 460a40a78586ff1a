//! What every plane promises to a controller manager: one suite, in process
//! and over the network.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tidegate_model::ResourceVersion;
use tidegate_runtime::{
    ApiError, Fault, Fence, Item, Kind, Lease, LeaseRequest, Plane, Precondition, StateChange, WatchEvent, WatchStream,
};

/// Much longer than the suite takes: no term ends by itself.
const LEASE_TIME: Duration = Duration::from_secs(600);

/// A kind that the contract can be run on.
pub const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 100}
              color: {type: string}
          status:
            type: object
            properties:
              observedGeneration: {type: integer}
              replicas: {type: integer, minimum: 0}
              note: {type: string}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
                    observedGeneration: {type: integer}
";

/// `push` gives an object of `kind` in the namespace `default` a new size;
/// objects are made by it.
pub async fn run(plane: &dyn Plane, kind: &Kind, push: impl AsyncFn(&str, i64)) {
    objects(plane, kind, &push).await;
    leases(plane).await;
    fences(plane, kind, &push).await;
    state(plane).await;
}

async fn objects(plane: &dyn Plane, kind: &Kind, push: &impl AsyncFn(&str, i64)) {
    for name in ["b", "a", "c"] {
        push(name, 1).await;
    }
    let (items, version) = list(plane, kind).await;
    let names: Vec<&str> = items.iter().map(|item| &*item.key.name).collect();
    assert_eq!(names, ["a", "b", "c"], "in order");
    assert_eq!(items[0].key, kind.key(Some("default"), "a"));

    let item = plane.get(kind, &items[0].key).await.unwrap().unwrap();
    assert_eq!(item, items[0]);
    assert_eq!(plane.get(kind, &kind.key(Some("default"), "none")).await.unwrap(), None);

    let mut events = Events { stream: plane.watch(kind, version).await.unwrap(), rest: VecDeque::new() };
    let written = patch(plane, kind, &item, json!({"replicas": 2})).await.unwrap();
    assert_eq!(written.object().unwrap().status(), Some(&json!({"replicas": 2})));
    let same = patch(plane, kind, &written, json!({"replicas": 2})).await.unwrap();
    assert_eq!(same.version, written.version, "nothing changed");
    let conflict = patch(plane, kind, &item, json!({"replicas": 3})).await.unwrap_err();
    assert_eq!(conflict.fault, Fault::Conflict, "{conflict}");
    let invalid = patch(plane, kind, &written, json!({"replicas": -1})).await.unwrap_err();
    assert_eq!(invalid.fault, Fault::Invalid, "{invalid}");
    let none = Item { key: kind.key(Some("default"), "none"), ..written.clone() };
    assert_eq!(patch(plane, kind, &none, json!({})).await.unwrap_err().fault, Fault::NotFound);
    push("d", 1).await;
    let WatchEvent::Modified(seen) = events.next().await else { panic!("a was modified") };
    // The order of an object's fields is the plane's own.
    assert_eq!((&seen.key, seen.version), (&written.key, written.version));
    assert_eq!(seen.object().unwrap(), written.object().unwrap());
    let WatchEvent::Added(added) = events.next().await else { panic!("d was added") };
    assert_eq!(&*added.key.name, "d");

    let finalizer = "example.com/wait".to_owned();
    let at = precondition(&written, None);
    let held = plane.patch_finalizers(kind, &at, std::slice::from_ref(&finalizer), &[]).await.unwrap().unwrap();
    assert_eq!(held.object().unwrap().finalizers().collect::<Vec<_>>(), [&finalizer]);
    let freed = plane.patch_finalizers(kind, &precondition(&held, None), &[], &[finalizer]).await.unwrap();
    assert!(freed.is_some(), "it is not being deleted");

    let old = ResourceVersion::line_start(1_000_000_000);
    let expired = match plane.watch(kind, old).await {
        Ok(mut stream) => stream.next().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(expired.fault, Fault::Expired, "{expired}");
    let unknown = Kind::new("example.com/v1", "Nothing", "nothings");
    assert_eq!(plane.list(&unknown, None).await.unwrap_err().fault, Fault::KindNotFound);
}

async fn leases(plane: &dyn Plane) {
    let first = term(plane, "one").await;
    let theirs = plane.lease(&acquire("two")).await.unwrap();
    assert_eq!((&*theirs.holder, theirs.transitions), ("one", first.transitions), "it is taken");
    let renew = |fence: &Fence| LeaseRequest::Renew { fence: fence.clone(), duration: LEASE_TIME };
    plane.lease(&renew(&first)).await.unwrap();
    let again = term(plane, "one").await;
    assert_eq!(again.transitions, first.transitions + 1, "a new life is a new term");
    assert_eq!(plane.lease(&renew(&first)).await.unwrap_err().fault, Fault::LeaseLost);
    plane.lease(&LeaseRequest::Release { fence: again.clone() }).await.unwrap();
    let second = term(plane, "two").await;
    assert_eq!(second.transitions, again.transitions + 1);
    plane.lease(&LeaseRequest::Release { fence: second }).await.unwrap();
}

async fn fences(plane: &dyn Plane, kind: &Kind, push: &impl AsyncFn(&str, i64)) {
    push("fenced", 1).await;
    let key = kind.key(Some("default"), "fenced");
    let item = plane.get(kind, &key).await.unwrap().unwrap();
    let old = term(plane, "one").await;
    let new = term(plane, "one").await;
    let refused = plane.patch_status(kind, &precondition(&item, Some(&old)), json!({"replicas": 1})).await;
    assert_eq!(refused.unwrap_err().fault, Fault::LeaseLost, "a former term does not write");
    let refused = plane.patch_finalizers(kind, &precondition(&item, Some(&old)), &["x.io/a".into()], &[]).await;
    assert_eq!(refused.unwrap_err().fault, Fault::LeaseLost);
    let row = |value: &'static str| vec![StateChange { name: "checkpoint".into(), value: Some(value.into()) }];
    assert_eq!(plane.state_write("fenced", Some(&old), row("old")).await.unwrap_err().fault, Fault::LeaseLost);
    assert_eq!(rows(plane, "fenced", "checkpoint").await, []);
    plane.state_write("fenced", Some(&new), row("new")).await.unwrap();
    plane.patch_status(kind, &precondition(&item, Some(&new)), json!({"replicas": 1})).await.unwrap();
    let nobody = Fence { name: "nobodys".into(), ..new };
    let refused = plane.state_write("fenced", Some(&nobody), row("x")).await.unwrap_err();
    assert_eq!(refused.fault, Fault::LeaseLost, "a lease that does not exist is nobody's");
}

async fn state(plane: &dyn Plane) {
    let put = |name: &str, value: &[u8]| StateChange { name: name.into(), value: Some(Bytes::copy_from_slice(value)) };
    let many = (0..12_000).map(|at| put(&format!("known/ns k{at:05}"), b"")).collect::<Vec<_>>();
    for chunk in many.chunks(5_000) {
        plane.state_write("one", None, chunk.to_vec()).await.unwrap();
    }
    // Any bytes, any controller whose name begins with another's.
    plane.state_write("one", None, vec![put("unfinished/ a", &[0, 255, b'"'])]).await.unwrap();
    plane.state_write("one-more", None, vec![put("known/ns other", b"")]).await.unwrap();
    let known = rows(plane, "one", "known/").await;
    assert_eq!(known.len(), many.len());
    assert!(known.iter().map(|(name, _)| name).is_sorted());
    assert_eq!(
        rows(plane, "one", "unfinished/").await,
        [("unfinished/ a".into(), Bytes::from_static(&[0, 255, b'"']))]
    );
    assert_eq!(rows(plane, "one-more", "known/").await, [("known/ns other".into(), Bytes::new())]);
    let mut named =
        plane.state_get("one", &["known/ns k0", "known/ns k00007", "unfinished/ a"].map(Into::into)).await.unwrap();
    named.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = named.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["known/ns k00007", "unfinished/ a"], "whole names, and those that there are");
    assert_eq!(&*named[1].value, &[0, 255, b'"']);
    let change = vec![StateChange { name: "unfinished/ a".into(), value: None }, put("known/ns new", b"x")];
    plane.state_write("one", None, change).await.unwrap();
    assert_eq!(rows(plane, "one", "unfinished/").await, []);
    let nonsense = plane.state_write("one", None, vec![put("nonsense", b"")]).await.unwrap_err();
    assert_eq!(nonsense.fault, Fault::Invalid, "{nonsense}");
}

async fn list(plane: &dyn Plane, kind: &Kind) -> (Vec<Item>, ResourceVersion) {
    let (mut items, mut next, mut versions) = (Vec::new(), None::<String>, BTreeSet::new());
    loop {
        let page = plane.list(kind, next.as_deref()).await.unwrap();
        items.extend(page.items);
        versions.insert(page.version);
        next = page.next;
        if next.is_none() {
            assert_eq!(versions.len(), 1, "pages are of one version");
            return (items, page.version);
        }
    }
}

/// Events one by one, without bookmarks.
struct Events {
    stream: Box<dyn WatchStream>,
    rest: VecDeque<WatchEvent>,
}

impl Events {
    async fn next(&mut self) -> WatchEvent {
        loop {
            if let Some(event) = self.rest.pop_front() {
                return event;
            }
            let events = self.stream.next().await.unwrap();
            self.rest.extend(events.into_iter().filter(|event| !matches!(event, WatchEvent::Bookmark(_))));
        }
    }
}

async fn rows(plane: &dyn Plane, controller: &str, prefix: &str) -> Vec<(String, Bytes)> {
    let mut all: Vec<(String, Bytes)> = Vec::new();
    loop {
        let rows = plane.state_read(controller, prefix, all.last().map(|(name, _)| name.as_str())).await.unwrap();
        if rows.is_empty() {
            return all;
        }
        all.extend(rows.into_iter().map(|row| (row.name, row.value)));
    }
}

fn precondition(item: &Item, fence: Option<&Fence>) -> Precondition {
    Precondition { key: item.key.clone(), version: item.version, fence: fence.cloned() }
}

async fn patch(plane: &dyn Plane, kind: &Kind, item: &Item, status: serde_json::Value) -> Result<Item, ApiError> {
    plane.patch_status(kind, &precondition(item, None), status).await
}

fn acquire(holder: &str) -> LeaseRequest {
    let (namespace, name) = ("system".into(), "contract".into());
    LeaseRequest::Acquire { namespace, name, holder: holder.into(), duration: LEASE_TIME }
}

async fn term(plane: &dyn Plane, holder: &str) -> Fence {
    let Lease { holder: theirs, transitions } = plane.lease(&acquire(holder)).await.unwrap();
    assert_eq!(&*theirs, holder);
    Fence { namespace: "system".into(), name: "contract".into(), holder: theirs, transitions }
}
