//! Properties of the row codec: what is written reads back, and what was not
//! written is refused without a panic.

use bytes::Bytes;
use proptest::prelude::*;
use tidegate_model::{EventType, GroupResource, Labels, ObjectKey, ResourceVersion};

use crate::event::EventParts;
use crate::row::{self, ObjectRow};

fn version() -> impl Strategy<Value = ResourceVersion> {
    (1_000_000_000_000_000u64..1 << 53).prop_map(ResourceVersion::from_raw)
}

/// Anything but NUL, which keys may not have.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[^\0]{1,20}").expect("a regex")
}

fn key() -> impl Strategy<Value = ObjectKey> {
    (proptest::option::of(text()), text(), proptest::option::of(text()), text()).prop_map(
        |(group, plural, namespace, name)| {
            ObjectKey::new(GroupResource::new(&group.unwrap_or_default(), &plural), namespace.as_deref(), &name)
        },
    )
}

fn labels() -> impl Strategy<Value = Labels> {
    proptest::collection::vec((".{0,8}", ".{0,8}"), 0..5).prop_map(|pairs| pairs.into_iter().collect())
}

fn bytes() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 16..200).prop_map(Bytes::from)
}

fn event() -> impl Strategy<Value = EventParts> {
    let kind = prop_oneof![Just(EventType::Added), Just(EventType::Modified), Just(EventType::Deleted)];
    let parts = (version(), kind, key(), labels(), proptest::option::of(labels()), bytes(), any::<u64>());
    parts.prop_map(|(version, kind, key, labels, previous_labels, object, time_ms)| EventParts {
        version,
        kind,
        key,
        labels,
        previous_labels,
        object,
        time_ms,
    })
}

proptest! {
    #[test]
    fn objects_read_back(version in version(), labels in labels(), json in bytes(), place in any::<prop::sample::Index>()) {
        let version_at = place.index(json.len() - ResourceVersion::DIGITS + 1);
        let row = ObjectRow::new(version, version_at, labels.clone(), &json);
        let back = ObjectRow::decode(row.raw).unwrap();
        prop_assert_eq!((back.version, back.version_at, &back.labels, back.json()), (version, version_at, &labels, json));
        let stamped = back.restamped(version);
        let digits = version.to_string();
        prop_assert_eq!(&stamped[version_at..version_at + ResourceVersion::DIGITS], digits.as_bytes());
    }

    #[test]
    fn events_read_back(event in event()) {
        let raw = row::encode_event(&event);
        prop_assert_eq!(row::event_key(&raw).unwrap(), &row::encode_key(&event.key)[..]);
        prop_assert_eq!(row::decode_event(event.version, &raw).unwrap(), event);
    }

    #[test]
    fn keys_read_back_and_sort_by_scope(a in key(), b in key()) {
        prop_assert_eq!(&row::decode_key(&row::encode_key(&a)).unwrap(), &a);
        let in_scope = row::resource_prefix(&a.resource, a.namespace.as_deref());
        let is_within = a.resource == b.resource && (a.namespace.is_none() || a.namespace == b.namespace);
        let encoded = row::encode_key(&b);
        prop_assert_eq!(encoded.starts_with(&in_scope), is_within);
        prop_assert_eq!(encoded >= in_scope && encoded < row::prefix_end(&in_scope), is_within);
    }

    /// A row that is cut or changed anywhere is read or refused, never a panic;
    /// cut within its header it is always refused.
    #[test]
    fn damaged_rows_are_no_panic(event in event(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let object = ObjectRow::new(event.version, 0, event.labels.clone(), &event.object);
        let header = object.raw.len() - event.object.len();
        for (raw, decode) in [
            (object.raw, (|raw| ObjectRow::decode(raw).is_ok()) as fn(Bytes) -> bool),
            (row::encode_event(&event), |raw| {
                let known = ResourceVersion::line_start(1_763_240_000);
                row::event_key(&raw).is_ok() && row::decode_event(known, &raw).is_ok()
            }),
        ] {
            let at = at.index(raw.len());
            let mut changed = raw.to_vec();
            changed[at] = to;
            decode(changed.into());
            let is_read = decode(raw.slice(..at));
            prop_assert!(!is_read || at >= header.min(raw.len() - event.object.len()));
        }
    }
}
