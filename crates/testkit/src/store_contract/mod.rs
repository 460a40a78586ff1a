//! What every store must do, whatever engine is below it.
//!
//! `store_contract!(open)` makes one test of each case, where
//! `open(Options) -> Fixture` opens an empty store.

pub mod lists;
pub mod watches;
pub mod writes;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tidegate_model::{EventType, ResourceVersion};
use tidegate_store::{Options, Selection, Start, Store, WatchItem, Watcher};

use crate::MemoryEngine;

/// A store, and what must outlive it.
pub struct Fixture {
    pub store: Store,
    pub guard: Box<dyn Any>,
}

/// The store over the strict engine, with versions that have gaps and a live
/// buffer so small that watchers read the log all the time.
pub fn open_strict(options: Options) -> Fixture {
    let options = Options { version_stride: 7, live_events_max: 4, ..options };
    let store = Store::with_engine(Arc::new(MemoryEngine::default()), options).unwrap();
    Fixture { store, guard: Box::new(()) }
}

pub fn open_embedded(options: Options) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    Fixture { store: Store::open(dir.path(), options).unwrap(), guard: Box::new(dir) }
}

/// Far away, so that only tests about bookmarks see any.
pub const NO_BOOKMARKS: Duration = Duration::from_secs(3600);

pub fn quiet() -> Options {
    Options { bookmark_interval: NO_BOOKMARKS, ..Options::default() }
}

/// An item as `ADDED a/name` or `BOOKMARK`.
pub fn describe(item: &WatchItem) -> String {
    match item {
        WatchItem::Event { kind, event } => {
            format!("{kind} {}/{}", event.key.namespace.as_deref().unwrap_or_default(), event.key.name)
        }
        WatchItem::Bookmark { initial_end: true, .. } => "INITIAL END".into(),
        WatchItem::Bookmark { .. } => "BOOKMARK".into(),
    }
}

/// The next `count` items; waits for them.
pub async fn take(watcher: &mut Watcher, count: usize) -> Vec<WatchItem> {
    let mut items = Vec::new();
    while items.len() < count {
        items.extend(watcher.next().await.unwrap());
    }
    assert_eq!(items.len(), count, "{:?}", items.iter().map(describe).collect::<Vec<_>>());
    items
}

/// All events of the selection up to the store's newest version.
pub async fn replay(store: &Store, selection: Selection, after: ResourceVersion) -> Vec<(EventType, ResourceVersion)> {
    let newest = store.view().version();
    let mut watcher = store.watch(selection, Start::After(after)).unwrap();
    let mut seen = Vec::new();
    while watcher.cursor() < newest {
        // Ends by itself: the cursor reaches the newest version, matched or not.
        let Ok(items) = tokio::time::timeout(Duration::from_millis(5), watcher.next()).await else { continue };
        seen.extend(items.unwrap().iter().filter_map(|item| match item {
            WatchItem::Event { kind, event } => Some((*kind, event.version)),
            WatchItem::Bookmark { .. } => None,
        }));
    }
    seen
}

#[macro_export]
macro_rules! store_contract {
    ($open:path) => {
        $crate::store_contract!(@cases $open, writes:
            versions_rise_and_are_stamped, expectations, a_conflict_leaves_no_trace, deletes_carry_the_last_state,
            rebase_decides_again, marks_change_with_objects, counters_follow, refuses_what_it_cannot_hold,
            transactions_of_one_batch_see_each_other, closing_refuses_later_writes);
        $crate::store_contract!(@cases $open, lists:
            selects_by_scope_name_and_labels, pages_are_of_one_version, tokens_are_checked,
            held_snapshots_are_bounded, a_view_never_changes);
        $crate::store_contract!(@cases $open, watches:
            initial_then_changes, resumes_exactly, stale_future_and_foreign_cursors,
            transitions_are_the_same_live_and_replayed, bookmarks_reach_idle_and_filtered,
            a_transaction_arrives_in_order, scopes_and_names, channels_go_with_their_watchers,
            closing_ends_watchers_after_the_last_event, dropping_a_wait_loses_nothing, the_window_moves_on,
            the_window_ends_without_writes, watchers_are_limited, who_was_behind_learns_that_it_is_not);
    };
    (@cases $open:path, $module:ident: $($case:ident),*) => {
        mod $module {
            $(#[tokio::test]
            async fn $case() {
                $crate::store_contract::$module::$case(&$open).await;
            })*
        }
    };
}
