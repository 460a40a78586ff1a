use serde_json::Value;

use super::*;
use crate::{BoxError, Change, Index, SavedRecord, Touched};

/// Holds whatever it is asked about.
struct Everything;

impl Index for Everything {
    fn kinds(&self) -> Vec<Kind> {
        vec![kind()]
    }
    fn apply(&self, _kind: &Kind, _changes: &[Change<'_>], _touched: &mut Touched) {}
    fn keys(&self, _kind: &Kind) -> Vec<ObjectKey> {
        (0..5).map(key).collect()
    }
    fn audit(&self, _touched: &mut Touched) {}
}

impl Durable for Everything {
    fn name(&self) -> &'static str {
        "index.everything"
    }
    fn format(&self) -> u32 {
        7
    }
    fn record(&self, key: &ObjectKey) -> Option<Bytes> {
        let size = if *key.name == *"t99" { rows::RECORD_BYTES_MAX + 1 } else { 10 };
        Some(Bytes::from(vec![0; size]))
    }
    fn load(&self, _kind: &Kind, _records: &[SavedRecord<'_>]) -> Result<(), BoxError> {
        Ok(())
    }
    fn recheck(&self, _touched: &mut Touched) {}
}

fn kind() -> Kind {
    Kind::new("example.com/v1", "Thing", "things")
}

fn key(number: usize) -> ObjectKey {
    kind().key(Some("ns"), &format!("t{number}"))
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_raw(ResourceVersion::line_start(1_763_240_000).raw() + number)
}

/// Two records and a position in one write.
fn unsaved(loaded: Option<u64>) -> Unsaved {
    let position = loaded.map(|number| Position { id: 1, versions: vec![version(number)] });
    Unsaved::new(Arc::new(Everything), 3, vec![kind()], position)
}

fn term(number: u64, torn: bool) -> Before {
    let versions = [("things".to_owned(), version(number).to_string())].into();
    Before::Term(Some(SavedIndex { format: 7, id: 1, versions, torn, summary: Default::default() }))
}

/// What a step does: how many records it writes, the position that it names,
/// whether that is torn, whether more follows.
fn shown(step: Step) -> String {
    let Step::Write { changes, more } = step else { return format!("{step:?}") };
    let (rows, records): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.name == rows::INDEX);
    let row = rows.first().map(|row| serde_json::from_slice::<Value>(row.value.as_ref().unwrap()).unwrap());
    let position = row.map(|row| {
        let raw: u64 = row["versions"]["things"].as_str().unwrap().parse().unwrap();
        (raw - version(0).raw(), row["torn"] == true)
    });
    format!("{} {position:?} {more}", records.len())
}

#[test]
fn a_position_is_named_with_all_that_it_covers_or_is_torn() {
    let mut unsaved = unsaved(Some(10));
    assert_eq!(shown(unsaved.step(term(10, false))), "Nothing");
    unsaved.applied(0, Some(version(15)), (0..5).map(key).collect());
    assert_eq!(shown(unsaved.step(Before::Saved)), "2 Some((10, true)) true");
    assert_eq!(shown(unsaved.step(Before::Saved)), "2 Some((10, true)) true");
    assert_eq!(shown(unsaved.step(Before::Saved)), "1 Some((15, false)) false");
    assert_eq!(shown(unsaved.step(Before::Saved)), "Nothing");
    unsaved.applied(0, Some(version(16)), Vec::new());
    assert_eq!(shown(unsaved.step(Before::Saved)), "0 Some((16, false)) false");
}

#[test]
fn a_write_that_may_not_have_happened_is_made_again() {
    let mut unsaved = unsaved(Some(10));
    unsaved.applied(0, Some(version(11)), vec![key(1)]);
    assert_eq!(shown(unsaved.step(term(10, false))), "1 Some((11, false)) false");
    unsaved.applied(0, Some(version(12)), vec![key(2)]);
    assert_eq!(shown(unsaved.step(term(10, false))), "2 Some((12, false)) false");
}

#[test]
fn what_was_not_loaded_is_written_whole_and_named_at_its_end() {
    let mut unsaved = unsaved(None);
    assert_eq!(shown(unsaved.step(Before::Term(None))), "Nothing", "it is not filled");
    unsaved.applied(0, Some(version(20)), vec![key(1)]);
    assert_eq!(shown(unsaved.step(Before::Saved)), "Clear");
    assert_eq!(shown(unsaved.step(Before::Term(None))), "Clear", "nobody knows whether it was cleared");
    assert_eq!(shown(unsaved.step(Before::Cleared)), "2 None true");
    unsaved.applied(0, Some(version(21)), vec![key(1)]);
    assert_eq!(shown(unsaved.step(Before::Saved)), "2 None true");
    assert_eq!(shown(unsaved.step(Before::Saved)), "2 Some((21, false)) false");
}

#[test]
fn a_manager_that_takes_over_waits_until_it_has_seen_what_was_saved() {
    let mut unsaved = unsaved(Some(10));
    unsaved.applied(0, Some(version(11)), vec![key(1)]);
    assert_eq!(shown(unsaved.step(term(13, false))), "Nothing");
    unsaved.applied(0, Some(version(13)), vec![key(2)]);
    assert_eq!(shown(unsaved.step(Before::Saved)), "2 Some((13, false)) false");
}

#[test]
fn what_cannot_be_accounted_for_is_written_anew() {
    let mut others =
        SavedIndex { format: 7, id: 2, versions: Default::default(), torn: false, summary: Default::default() };
    others.versions.insert("things".into(), version(10).to_string());
    for row in [term(10, true), Before::Term(None), Before::Term(Some(others))] {
        assert_eq!(shown(unsaved(Some(10)).step(row.clone())), "Clear", "{row:?}");
    }
    // One that has listed again has not seen what came and went meanwhile.
    let mut listed = unsaved(Some(10));
    listed.applied(0, Some(version(30)), Vec::new());
    listed.listed();
    assert_eq!(shown(listed.step(term(10, false))), "Clear");
    // One that stands by for long does not remember everything.
    let mut idle = unsaved(Some(10));
    idle.applied(0, Some(version(11)), (0..=KEYS_MAX).map(key).collect());
    assert_eq!(idle.keys.len(), 0);
    assert_eq!(shown(idle.step(term(10, false))), "Clear");
}

#[test]
fn a_record_that_is_too_large_ends_the_saving_and_nothing_else() {
    let mut unsaved = unsaved(Some(10));
    unsaved.applied(0, Some(version(11)), vec![key(1), key(99)]);
    assert_eq!(shown(unsaved.step(term(10, false))), "Clear");
    assert_eq!(shown(unsaved.step(Before::Cleared)), "Nothing");
    unsaved.applied(0, Some(version(12)), vec![key(1)]);
    assert_eq!(shown(unsaved.step(Before::Saved)), "Nothing");
}
