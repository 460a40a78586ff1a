//! A change as the log keeps it and watchers share it.

use std::fmt;
use std::sync::Mutex;

use bytes::Bytes;
use tidegate_model::{EventType, Labels, ObjectKey, ResourceVersion};

/// Frames that one event keeps: watchers of more selections than this encode
/// their own. A frame is about the size of its object, so an event in the live
/// buffer costs at most five times its bytes.
const MEMO_FRAMES_MAX: usize = 4;

pub struct Event {
    pub version: ResourceVersion,
    pub kind: EventType,
    pub key: ObjectKey,
    pub labels: Labels,
    /// Only where they differ from `labels`: enough to tell a watcher that the
    /// object started or stopped to match, live and replayed alike.
    pub previous_labels: Option<Labels>,
    /// The object at `version`; the last state, stamped with it, for a delete.
    pub object: Bytes,
    /// When it was committed; 0 for an object of an initial list, whose commit
    /// time the store does not keep.
    pub time_ms: u64,
    memo: Mutex<Vec<(u64, Bytes)>>,
}

/// What an event is made of; see the fields of [`Event`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventParts {
    pub version: ResourceVersion,
    pub kind: EventType,
    pub key: ObjectKey,
    pub labels: Labels,
    pub previous_labels: Option<Labels>,
    pub object: Bytes,
    pub time_ms: u64,
}

impl Event {
    pub fn new(parts: EventParts) -> Self {
        let EventParts { version, kind, key, labels, previous_labels, object, time_ms } = parts;
        Self { version, kind, key, labels, previous_labels, object, time_ms, memo: Mutex::default() }
    }

    /// The frame of this event for the selection `id`, encoded by the first
    /// who asks and shared by all who hold the event.
    pub fn memo(&self, id: u64, encode: impl FnOnce(&Event) -> Bytes) -> Bytes {
        // Held while encoding, so that a second watcher waits instead of
        // doing the same work.
        let mut frames = self.memo.lock().expect("an encoder panicked");
        if let Some((_, frame)) = frames.iter().find(|(known, _)| *known == id) {
            return frame.clone();
        }
        let frame = encode(self);
        if frames.len() < MEMO_FRAMES_MAX {
            frames.push((id, frame.clone()));
        }
        frame
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.version, self.kind, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_model::GroupResource;

    #[test]
    fn a_frame_is_encoded_once_and_the_slots_are_bounded() {
        let event = Event::new(EventParts {
            version: ResourceVersion::line_start(1_763_240_000),
            kind: EventType::Added,
            key: ObjectKey::new(GroupResource::new("", "pods"), None, "a"),
            labels: Labels::default(),
            previous_labels: None,
            object: Bytes::new(),
            time_ms: 0,
        });
        let mut encoded = 0;
        for id in [1, 1, 2, 3, 4, 5, 5, 1] {
            let frame = event.memo(id, |_| {
                encoded += 1;
                Bytes::from(id.to_string())
            });
            assert_eq!(frame, id.to_string());
        }
        // 1 to 4 once each, 5 each time: its slot is beyond the limit.
        assert_eq!(encoded, 6);
    }
}
