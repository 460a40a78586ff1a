//! What a watch knows: where it is, and what it has shown.
//!
//! Pure: events go in, what is to be shown comes out. One path serves the first
//! list and every later one: what is listed and was shown in the same version
//! is not shown again, and what was shown and is not listed is gone.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_client::{Code, Event, EventType, Refusal};

/// Objects remembered, to tell after an expired cursor which of them are gone.
/// About 150 bytes each, so at most ~300 MiB; a wider watch goes on without.
const KNOWN_OBJECTS_MAX: usize = 2_000_000;

/// Where the caller wants to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum From {
    Initial,
    Now,
    /// A version that the user named, however old.
    Since(String),
    /// A version that the server just gave us.
    Reached(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    Initial,
    After(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    Resume,
    Relist,
    Stop,
}

type Key = (Option<String>, String);

pub struct Follower {
    state: State,
    /// Shown objects and their versions; `None` when they became too many.
    known: Option<BTreeMap<Key, String>>,
    cursor: Option<String>,
    /// The cursor is still the user's: if the server does not take it, the
    /// user has to know, for what was deleted since cannot be told.
    is_given: bool,
}

enum State {
    /// Within a list, with what it named so far.
    Listing {
        seen: BTreeSet<Key>,
    },
    Following,
}

impl Follower {
    pub fn new(from: From) -> Self {
        let is_given = matches!(from, From::Since(_));
        let (state, cursor) = match from {
            From::Initial | From::Now => (State::Listing { seen: BTreeSet::new() }, None),
            From::Since(version) | From::Reached(version) => (State::Following, Some(version)),
        };
        Self { state, known: Some(BTreeMap::new()), cursor, is_given }
    }

    /// What to ask the server for, at each connection. Within a list no version
    /// is a cursor: it says nothing about what is not listed yet.
    pub fn start(&mut self) -> Start {
        match (&mut self.state, &self.cursor) {
            (State::Following, Some(cursor)) => Start::After(cursor.clone()),
            (state, _) => {
                *state = State::Listing { seen: BTreeSet::new() };
                Start::Initial
            }
        }
    }

    /// For people.
    pub fn cursor(&self) -> &str {
        self.cursor.as_deref().unwrap_or("the start")
    }

    pub fn has_forgotten(&self) -> bool {
        self.known.is_none()
    }

    pub fn refused(&mut self, refusal: &Refusal) -> Next {
        match refusal.code() {
            Code::Later => Next::Resume,
            Code::CursorLost if !self.is_given && self.known.is_some() => {
                self.state = State::Listing { seen: BTreeSet::new() };
                Next::Relist
            }
            _ => Next::Stop,
        }
    }

    /// What is to be shown for it.
    pub fn accept(&mut self, event: Event) -> Vec<Event> {
        let Some(name) = event.name.clone().filter(|_| event.event_type != EventType::Bookmark) else {
            return self.bookmark(&event);
        };
        let key = (event.namespace.clone(), name);
        match &mut self.state {
            State::Listing { seen } => {
                if self.known.is_some() {
                    seen.insert(key.clone());
                }
                self.listed(key, event).into_iter().collect()
            }
            State::Following => {
                self.reach(&event.resource_version);
                self.remember(key, &event);
                vec![event]
            }
        }
    }

    fn listed(&mut self, key: Key, mut event: Event) -> Option<Event> {
        let shown = self.known.as_ref().and_then(|known| known.get(&key));
        match shown {
            Some(version) if *version == event.resource_version => return None,
            Some(_) => event.event_type = EventType::Modified,
            None => {}
        }
        self.remember(key, &event);
        Some(event)
    }

    fn bookmark(&mut self, event: &Event) -> Vec<Event> {
        let mut gone = Vec::new();
        if event.initial_events_end
            && let State::Listing { seen } = std::mem::replace(&mut self.state, State::Following)
            && let Some(known) = &mut self.known
        {
            gone = known
                .extract_if(.., |key, _| !seen.contains(key))
                .map(|(key, _)| deleted(key, &event.resource_version))
                .collect();
        }
        self.reach(&event.resource_version);
        gone
    }

    fn reach(&mut self, version: &str) {
        self.cursor = Some(version.to_owned());
        self.is_given = false;
    }

    fn remember(&mut self, key: Key, event: &Event) {
        let Some(known) = &mut self.known else { return };
        if event.event_type == EventType::Deleted {
            known.remove(&key);
        } else {
            known.insert(key, event.resource_version.clone());
        }
        if known.len() > KNOWN_OBJECTS_MAX {
            self.known = None;
        }
    }
}

fn deleted((namespace, name): Key, version: &str) -> Event {
    Event {
        event_type: EventType::Deleted,
        namespace,
        name: Some(name),
        resource_version: version.to_owned(),
        object: None,
        initial_events_end: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ADDED a 1`, `BOOKMARK - 9`, `END - 9`.
    fn event(text: &str) -> Event {
        let words: Vec<&str> = text.split(' ').collect();
        let event_type = match words[0] {
            "ADDED" => EventType::Added,
            "MODIFIED" => EventType::Modified,
            "DELETED" => EventType::Deleted,
            _ => EventType::Bookmark,
        };
        Event {
            event_type,
            namespace: None,
            name: Some(words[1].to_owned()).filter(|name| name != "-"),
            resource_version: words[2].into(),
            object: None,
            initial_events_end: words[0] == "END",
        }
    }

    fn play(follower: &mut Follower, events: &[&str]) -> Vec<String> {
        let shown = events.iter().flat_map(|text| follower.accept(event(text)));
        shown
            .map(|event| format!("{} {} {}", event.event_type.as_str(), event.name.unwrap(), event.resource_version))
            .collect()
    }

    fn refused(follower: &mut Follower, code: &str) -> Next {
        follower.refused(&Refusal::new("no", code))
    }

    #[test]
    fn a_first_list_then_changes() {
        let mut follower = Follower::new(From::Initial);
        assert_eq!(follower.start(), Start::Initial);
        let shown = play(&mut follower, &["ADDED a 1", "ADDED b 2", "END - 5", "MODIFIED a 6", "DELETED b 7"]);
        assert_eq!(shown, ["ADDED a 1", "ADDED b 2", "MODIFIED a 6", "DELETED b 7"]);
        assert_eq!(follower.start(), Start::After("7".into()));
    }

    #[test]
    fn bookmarks_move_the_cursor_and_are_not_shown() {
        let mut follower = Follower::new(From::Reached("3".into()));
        assert!(play(&mut follower, &["BOOKMARK - 8"]).is_empty());
        assert_eq!(follower.start(), Start::After("8".into()));
    }

    #[test]
    fn a_list_that_breaks_off_is_read_again_and_shown_once() {
        let mut follower = Follower::new(From::Initial);
        follower.start();
        play(&mut follower, &["ADDED a 1", "ADDED b 2", "BOOKMARK - 4"]);
        assert_eq!(follower.start(), Start::Initial);
        let shown = play(&mut follower, &["ADDED b 3", "ADDED c 4", "END - 5"]);
        assert_eq!(shown, ["MODIFIED b 3", "ADDED c 4", "DELETED a 5"]);
    }

    #[test]
    fn an_expired_cursor_shows_what_was_missed() {
        let mut follower = Follower::new(From::Initial);
        follower.start();
        play(&mut follower, &["ADDED a 1", "ADDED b 2", "ADDED c 3", "END - 3"]);
        for code in ["WATCH_EXPIRED", "FUTURE_RESOURCE_VERSION"] {
            assert_eq!(refused(&mut follower, code), Next::Relist, "{code}");
        }
        assert_eq!(follower.start(), Start::Initial);
        let shown = play(&mut follower, &["ADDED a 1", "ADDED b 8", "ADDED d 9", "END - 10"]);
        assert_eq!(shown, ["MODIFIED b 8", "ADDED d 9", "DELETED c 10"]);
        assert_eq!(follower.start(), Start::After("10".into()));
    }

    #[test]
    fn what_ends_a_watch() {
        for (code, expected) in [
            ("UNAVAILABLE", Next::Resume),
            ("RATE_LIMITED", Next::Resume),
            ("INTERNAL", Next::Resume),
            ("FORBIDDEN", Next::Stop),
            ("UNAUTHENTICATED", Next::Stop),
            ("KIND_NOT_FOUND", Next::Stop),
            ("BAD_REQUEST", Next::Stop),
            ("", Next::Stop),
        ] {
            assert_eq!(refused(&mut Follower::new(From::Initial), code), expected, "{code}");
        }
    }

    #[test]
    fn a_stale_version_of_the_user_is_the_users_to_know() {
        let mut follower = Follower::new(From::Since("1".into()));
        assert_eq!(refused(&mut follower, "WATCH_EXPIRED"), Next::Stop);
        play(&mut follower, &["MODIFIED a 2"]);
        assert_eq!(refused(&mut follower, "WATCH_EXPIRED"), Next::Relist);
    }

    #[test]
    fn a_watch_that_forgot_says_so() {
        let mut follower = Follower::new(From::Initial);
        follower.known = None;
        play(&mut follower, &["ADDED a 1", "END - 3"]);
        assert_eq!(follower.start(), Start::After("3".into()));
        assert_eq!(refused(&mut follower, "WATCH_EXPIRED"), Next::Stop);
        assert!(follower.has_forgotten());
    }
}
