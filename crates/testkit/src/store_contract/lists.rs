//! Lists: selection, paging, snapshots.

use std::time::Duration;

use serde_json::json;
use tidegate_store::{ListError, ListRequest, Options, Page, Selection, Store};

use super::{Fixture, quiet};
use crate::objects::{delete, key, put, select, widgets};

type Open = dyn Fn(Options) -> Fixture;

fn page(store: &Store, selection: Selection, limit: usize, token: Option<&str>) -> Result<Page, ListError> {
    let token = token.map(str::parse).transpose()?;
    store.list(&ListRequest { selection, limit: Some(limit), bytes_max: None, token })
}

fn names(page: &Page) -> String {
    page.items.iter().map(|object| &*object.key.name).collect::<Vec<_>>().join(" ")
}

pub async fn selects_by_scope_name_and_labels(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    for (path, labels) in [("a/1", "x=1"), ("a/2", "x=2"), ("ab/1", "x=1,y=1"), ("b/3", "")] {
        store.commit(put(path, labels, json!({}))).await.unwrap();
    }
    let all = Selection::all(widgets());
    for (namespace, name, labels, found) in [
        (None, None, "", "1 2 1 3"),
        (Some("a"), None, "", "1 2"),
        (Some("ab"), None, "", "1"),
        (None, Some("1"), "", "1 1"),
        (Some("a"), Some("1"), "", "1"),
        (Some("b"), Some("1"), "", ""),
        (None, None, "x=1", "1 1"),
        (None, None, "x", "1 2 1"),
        (None, None, "x!=1", "2 3"),
        (Some("a"), None, "x in (1,2),!y", "1 2"),
    ] {
        let selection = Selection {
            namespace: namespace.map(Into::into),
            name: name.map(Into::into),
            labels: labels.parse().unwrap(),
            ..all.clone()
        };
        let page = store.list(&ListRequest { selection, limit: None, bytes_max: None, token: None }).unwrap();
        assert_eq!(names(&page), found, "{namespace:?} {name:?} {labels}");
        assert_eq!(page.version, store.view().version());
    }
}

pub async fn pages_are_of_one_version(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    for i in 0..7 {
        store.commit(put(&format!("a/{i}"), "", json!({}))).await.unwrap();
    }
    let version = store.view().version();
    let mut seen = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let page = page(&store, select(""), 3, token.as_deref()).unwrap();
        assert_eq!(page.version, version);
        seen.push((names(&page), page.remaining));
        // What happens between two pages is not seen by either.
        store.commit(delete("a/4")).await.unwrap();
        store.commit(put("a/00", "", json!({}))).await.unwrap();
        store.commit(put("a/9", "", json!({}))).await.unwrap();
        let Some(next) = page.next else { break };
        token = Some(next.to_string());
    }
    let expected = [("0 1 2", 4), ("3 4 5", 1), ("6", 0)].map(|(names, left)| (names.to_string(), Some(left)));
    assert_eq!(seen, expected);
    assert_eq!(page(&store, select("x=1"), 3, None).unwrap().remaining, None, "a filtered list has no count");
    // By size: the page ends with the object that reaches it.
    let sized = ListRequest { selection: select(""), limit: None, bytes_max: Some(300), token: None };
    let sized = store.list(&sized).unwrap();
    assert!(sized.items.len() == 2 && sized.next.is_some(), "{}", names(&sized));
    // A last page that is exactly full has no token.
    assert!(page(&store, select(""), 8, None).unwrap().next.is_none());
}

pub async fn tokens_are_checked(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    for i in 0..4 {
        store.commit(put(&format!("a/{i}"), "x=1", json!({}))).await.unwrap();
    }
    let token = page(&store, select(""), 2, None).unwrap().next.unwrap().to_string();
    assert_eq!(names(&page(&store, select(""), 9, Some(&token)).unwrap()), "2 3");
    // Of another selection: its place means something else there.
    assert!(matches!(page(&store, select("x=1"), 2, Some(&token)), Err(ListError::InvalidToken)));
    let mut damaged = token.clone().into_bytes();
    damaged[5] = if damaged[5] == b'A' { b'B' } else { b'A' };
    let damaged = String::from_utf8(damaged).unwrap();
    for nonsense in ["", "x", "!!!", &damaged, &token[1..], &"A".repeat(100_000)] {
        let outcome = page(&store, select(""), 2, Some(nonsense));
        assert!(matches!(outcome, Err(ListError::InvalidToken)), "{:.20}", nonsense);
    }
}

pub async fn held_snapshots_are_bounded(open: &Open) {
    let Fixture { store, guard: _guard } = open(Options { list_snapshots_max: 2, ..quiet() });
    let mut tokens = Vec::new();
    for i in 0..4 {
        store.commit(put(&format!("a/{i}"), "", json!({}))).await.unwrap();
        store.commit(put(&format!("b/{i}"), "", json!({}))).await.unwrap();
        tokens.push(page(&store, select(""), 1, None).unwrap().next.unwrap().to_string());
    }
    assert_eq!(store.stats().list_snapshots, 2);
    let outcomes: Vec<bool> = tokens.iter().map(|token| page(&store, select(""), 1, Some(token)).is_ok()).collect();
    assert_eq!(outcomes, [false, false, true, true]);

    let Fixture { store, guard: _guard } = open(Options { list_snapshot_ttl: Duration::ZERO, ..quiet() });
    store.commit(put("a/1", "", json!({}))).await.unwrap();
    store.commit(put("a/2", "", json!({}))).await.unwrap();
    let token = page(&store, select(""), 1, None).unwrap().next.unwrap().to_string();
    assert!(matches!(page(&store, select(""), 1, Some(&token)), Err(ListError::Expired)));
}

pub async fn a_view_never_changes(open: &Open) {
    let Fixture { store, guard: _guard } = open(quiet());
    let first = store.commit(put("a/1", "", json!({}))).await.unwrap().version;
    let view = store.view();
    store.commit(put("a/1", "", json!({}))).await.unwrap();
    store.commit(put("a/2", "", json!({}))).await.unwrap();
    store.commit(delete("a/1")).await.unwrap();
    assert_eq!((view.version(), view.get(&key("a/1")).unwrap().unwrap().version), (first, first));
    assert_eq!((view.scan(&select(""), None).count(), view.count(&widgets(), None).unwrap()), (1, 1));
    let after = key("a/1");
    assert_eq!(store.view().scan(&select(""), Some(&after)).count(), 1);
}
