//! Whether a store has all that it acknowledged, and what to do if not.
//!
//! Invariant: a store that is refused is left as it was found. Loss is
//! accepted only by an explicit choice, and then a new epoch tells every
//! client that there is a gap.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tidegate_model::{ObjectKey, ResourceVersion};

use crate::engine::{Change, Engine, SegmentId, Snapshot, Table};
use crate::fjall_engine::FjallEngine;
use crate::head::Head;
use crate::journal::{self, Scan, Tail};
use crate::row::{self, corrupt};
use crate::stage::counter_row;
use crate::view::{MetaSort, counter_key, meta_rows};
use crate::{OnLoss, OpenError, Options, StoreError, table_lists};

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
struct Damage {
    place: PathBuf,
    reason: String,
}

/// Looks at the files before the engine opens, and may change, them; `tables`
/// are the numbers of those that must be there.
pub fn before_open(
    engine: &Path,
    tables: &[u64],
    acknowledged: Option<ResourceVersion>,
    on_loss: OnLoss,
) -> Result<(), OpenError> {
    if !engine.join("version").exists() {
        return clear_unborn(engine, acknowledged);
    }
    check_tables(engine, tables)?;
    let io = |doing| move |source| OpenError::Io { doing, path: engine.into(), source };
    if let Some(list) = table_lists::find_damaged(engine).map_err(io("read the tables in"))? {
        return Err(beyond_repair(list, "it is not what was written".into()));
    }
    let scans = journal::scan(engine).map_err(io("read the journal in"))?;
    match judge(&scans, acknowledged) {
        Ok(None) => Ok(()),
        Ok(Some(torn)) => {
            if let Tail::Torn { bytes } = torn.tail {
                let journal = torn.path.display();
                tracing::warn!(%journal, bytes, at = torn.end, "cut an unfinished transaction from the journal's end");
            }
            journal::cut(torn).map_err(io("cut the journal in"))
        }
        Err(damage) if on_loss == OnLoss::NewEpoch => {
            tracing::warn!(place = %damage.place.display(), reason = damage.reason, "opening a damaged store, as asked");
            Ok(())
        }
        Err(damage) => Err(lost(damage)),
    }
}

/// fjall takes a table without its `current` for one that was never finished,
/// and deletes it. That is right for a part of the log, whose loss is noticed
/// later; not for the tables that are as old as the store.
fn check_tables(engine: &Path, tables: &[u64]) -> Result<(), OpenError> {
    let files = tables.iter().map(|id| engine.join("keyspaces").join(id.to_string()).join("current"));
    match files.into_iter().find(|path| !path.exists()) {
        Some(path) => Err(beyond_repair(path, "the file is missing".into())),
        None => Ok(()),
    }
}

/// The journal that ends with an unfinished transaction, if one does.
fn judge(scans: &[Scan], acknowledged: Option<ResourceVersion>) -> Result<Option<&Scan>, Damage> {
    let damage = |scan: &Scan, reason: String| Err(Damage { place: scan.path.clone(), reason });
    for pair in scans.windows(2) {
        if pair[0].id + 1 != pair[1].id {
            return damage(&pair[1], format!("the journal before it, {}.jnl, is missing", pair[1].id - 1));
        }
    }
    let Some((active, sealed)) = scans.split_last() else { return Ok(None) };
    if let Some(scan) = sealed.iter().find(|scan| scan.tail != Tail::Clean) {
        return damage(scan, format!("it does not read beyond byte {}", scan.end));
    }
    let newest = scans.iter().filter_map(|scan| scan.newest).max();
    match active.tail {
        Tail::Clean => Ok(None),
        Tail::Damaged => damage(active, format!("the transaction at byte {} does not read, later ones do", active.end)),
        Tail::Torn { .. } => match (newest, acknowledged) {
            (Some(newest), Some(acknowledged)) if newest < acknowledged => damage(
                active,
                format!(
                    "it does not read beyond byte {}: {acknowledged} was acknowledged, {newest} is left",
                    active.end
                ),
            ),
            _ => Ok(Some(active)),
        },
    }
}

/// A first start that died before the engine was complete; nothing was ever
/// written to it.
fn clear_unborn(engine: &Path, acknowledged: Option<ResourceVersion>) -> Result<(), OpenError> {
    if acknowledged.is_some() {
        let reason = "the file is missing, though the store has been written to".into();
        return Err(beyond_repair(engine.join("version"), reason));
    }
    match fs::remove_dir_all(engine) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(OpenError::Io { doing: "remove the unfinished", path: engine.into(), source: error })
        }
        _ => Ok(()),
    }
}

/// Opens the engine; damage that makes it fail or panic is a refusal, too.
pub fn open_engine(dir: &Path, open: impl FnOnce() -> fjall::Result<FjallEngine>) -> Result<FjallEngine, OpenError> {
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok(engine)) => Ok(engine),
        Ok(Err(fjall::Error::Locked)) => Err(OpenError::Locked { dir: dir.into(), pid: None }),
        Ok(Err(fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source))))
            if is_of_disk(&source) =>
        {
            Err(OpenError::Disk { dir: dir.into(), source })
        }
        Ok(Err(error)) => Err(beyond_repair(dir.into(), format!("the engine does not open: {error:?}"))),
        Err(_) => Err(beyond_repair(dir.into(), "the engine's files contradict each other".into())),
    }
}

/// The disk refuses, and the files may be whole: no reason to restore a backup.
fn is_of_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), FileTooLarge | PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Compares what was recovered with what had been acknowledged.
pub fn after_open(
    engine: &FjallEngine,
    dir: &Path,
    acknowledged: Option<ResourceVersion>,
    options: &Options,
) -> Result<(), OpenError> {
    let head = Head::load(&*engine.snapshot()?)?;
    let Some(reason) = loss(head.as_ref(), &engine.segment_list(), acknowledged) else { return Ok(()) };
    if options.on_loss == OnLoss::Refuse {
        return Err(lost(Damage { place: dir.into(), reason }));
    }
    tracing::warn!(reason, "beginning a new epoch: every client will list again");
    Ok(begin_epoch(engine, options, acknowledged)?)
}

/// What was acknowledged and is not there.
fn loss(head: Option<&Head>, segments: &[SegmentId], acknowledged: Option<ResourceVersion>) -> Option<String> {
    let newest = head.map(|head| head.newest);
    let text = |version: Option<ResourceVersion>| version.map_or("nothing".into(), |version| version.to_string());
    if acknowledged > newest {
        let (told, found) = (text(acknowledged), text(newest));
        return Some(format!("writes up to {told} were acknowledged, but the newest one found is {found}"));
    }
    let missing = head?.segments.iter().find(|segment| !segments.contains(&segment.id))?;
    Some(format!("the events from {} to {} are missing", missing.first, missing.last))
}

/// Keeps the objects, counts them anew, forgets the log, and goes on above
/// every version that a client may have seen.
pub(crate) fn begin_epoch(
    engine: &dyn Engine,
    options: &Options,
    acknowledged: Option<ResourceVersion>,
) -> Result<(), StoreError> {
    let snapshot = engine.snapshot()?;
    let old = Head::load(&*snapshot)?;
    let newest = old.as_ref().map(|head| head.newest).max(acknowledged);
    let head = Head::new(crate::line_start::next(options, newest)?);
    let mut changes = old.map_or(Vec::new(), |mut old| old.drop_segments(old.segments.len()).1);
    changes.retain(|change| change.value.is_none());
    changes.extend(recount(&*snapshot)?);
    changes.extend(head.changes());
    engine.write(changes, head.newest)
}

/// The rows that make the counters say what the objects are.
fn recount(snapshot: &dyn Snapshot) -> Result<Vec<Change>, StoreError> {
    let mut counts = count_objects(snapshot, |_| {})?;
    for counter in meta_rows(snapshot, MetaSort::Counters) {
        counts.entry(counter?.0.to_vec()).or_default();
    }
    Ok(counts.into_iter().map(|(key, count)| counter_row(key, count)).collect())
}

pub(crate) fn count_objects(
    snapshot: &dyn Snapshot,
    mut each: impl FnMut(&ObjectKey),
) -> Result<std::collections::BTreeMap<Vec<u8>, u64>, StoreError> {
    let mut counts = std::collections::BTreeMap::new();
    for object in snapshot.range(Table::Objects, &[], &[0xff]) {
        let key = row::decode_key(&object?.0).map_err(corrupt("a key"))?;
        *counts.entry(counter_key(&key.resource, None)).or_default() += 1;
        if let Some(namespace) = &key.namespace {
            *counts.entry(counter_key(&key.resource, Some(namespace))).or_default() += 1;
        }
        each(&key);
    }
    Ok(counts)
}

fn lost(damage: Damage) -> OpenError {
    let remedy = "restore a backup with `tidegate store import`, or start once with `--accept-loss` to keep what reads";
    OpenError::Damaged { place: damage.place, reason: damage.reason, remedy }
}

fn beyond_repair(place: PathBuf, reason: String) -> OpenError {
    OpenError::Damaged { place, reason, remedy: "restore a backup with `tidegate store import` into a new directory" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(offset: u64) -> ResourceVersion {
        ResourceVersion::from_raw(ResourceVersion::line_start(1_763_240_000).raw() + offset)
    }

    fn journal(id: u64, tail: Tail, newest: Option<u64>) -> Scan {
        Scan { path: format!("{id}.jnl").into(), id, end: 100, tail, newest: newest.map(version) }
    }

    #[test]
    fn only_an_unacknowledged_end_is_cut() {
        let torn = Tail::Torn { bytes: 7 };
        for (case, journals, acknowledged, verdict) in [
            ("none", vec![], Some(5), Ok(None)),
            ("clean", vec![journal(0, Tail::Clean, Some(5))], Some(5), Ok(None)),
            ("torn", vec![journal(0, torn, Some(5))], Some(5), Ok(Some(0))),
            ("torn, nothing noted", vec![journal(0, torn, Some(5))], None, Ok(Some(0))),
            (
                "torn, first of its file",
                vec![journal(0, Tail::Clean, Some(5)), journal(1, torn, None)],
                Some(5),
                Ok(Some(1)),
            ),
            ("acknowledged is gone", vec![journal(0, torn, Some(4))], Some(5), Err("was acknowledged")),
            ("damaged", vec![journal(0, Tail::Damaged, Some(5))], Some(5), Err("later ones do")),
            (
                "sealed and torn",
                vec![journal(0, torn, Some(4)), journal(1, Tail::Clean, Some(5))],
                Some(5),
                Err("beyond byte"),
            ),
            (
                "one is missing",
                vec![journal(1, Tail::Clean, None), journal(3, Tail::Clean, Some(5))],
                Some(5),
                Err("2.jnl"),
            ),
        ] {
            let judged = judge(&journals, acknowledged.map(version)).map(|torn| torn.map(|scan| scan.id));
            match (judged, verdict) {
                (Ok(judged), Ok(verdict)) => assert_eq!(judged, verdict, "{case}"),
                (Err(damage), Err(part)) => assert!(damage.reason.contains(part), "{case}: {}", damage.reason),
                (judged, _) => panic!("{case}: {judged:?}"),
            }
        }
    }
}
