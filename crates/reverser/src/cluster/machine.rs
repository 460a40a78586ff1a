//! List-then-watch as a value: what to ask next, and what an answer means.
//!
//! Invariant: `Complete` comes only after every object of one consistent list;
//! an interrupted list starts again from nothing.

use std::time::Duration;

const PAGE_OBJECTS: u32 = 500;
/// 500, 62, 7, 1: objects of 1.5 MiB fit after two answers that did not.
const PAGE_SHRINKS_BY: u32 = 8;
const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing is known, or what is known is too old.
    Empty,
    /// The list comes through the watch.
    Streaming,
    /// The list comes in pages; `None` is the first one.
    Paging { token: Option<String> },
    /// Everything up to this version is known.
    Watching { at: String },
}

/// What to ask the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    StreamList,
    Page { token: Option<String>, objects: u32 },
    Watch { at: String },
}

/// What the server said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// An object: added, modified or deleted at this version.
    Event {
        version: String,
    },
    Bookmark {
        version: String,
        ends_list: bool,
    },
    /// A page was read; `token` if more follow.
    Page {
        version: String,
        token: Option<String>,
    },
    /// The stream ended without an error.
    Closed,
    Failed(Failure),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// 410: the version is not kept any more.
    Expired,
    /// The server does not stream lists.
    NoStreaming,
    /// A page is more than we read at once.
    TooLarge,
    Other,
}

/// What it means to whoever listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// Objects that follow are a new list, from its beginning.
    Restart,
    Complete,
    Nothing,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    state: State,
    streams: bool,
    /// Of a page.
    objects: u32,
    failures: u32,
}

impl Default for Machine {
    fn default() -> Self {
        Self { state: State::Empty, streams: true, objects: PAGE_OBJECTS, failures: 0 }
    }
}

impl Machine {
    /// Moves from `Empty` into a list; says whether that begins a new one.
    pub fn ask(&mut self) -> (Ask, Means) {
        let objects = self.objects;
        match (&self.state, self.streams) {
            (State::Empty | State::Streaming, true) => {
                self.state = State::Streaming;
                (Ask::StreamList, Means::Restart)
            }
            (State::Empty | State::Streaming, false) => {
                self.state = State::Paging { token: None };
                (Ask::Page { token: None, objects }, Means::Restart)
            }
            (State::Paging { token: None }, _) => (Ask::Page { token: None, objects }, Means::Restart),
            (State::Paging { token }, _) => (Ask::Page { token: token.clone(), objects }, Means::Nothing),
            (State::Watching { at }, _) => (Ask::Watch { at: at.clone() }, Means::Nothing),
        }
    }

    pub fn hear(&mut self, said: Said) -> Means {
        let (state, means) = match (std::mem::replace(&mut self.state, State::Empty), said) {
            (State::Watching { .. }, Said::Event { version } | Said::Bookmark { version, .. }) => {
                (State::Watching { at: version }, Means::Nothing)
            }
            (State::Streaming, Said::Bookmark { version, ends_list: true }) => {
                (State::Watching { at: version }, Means::Complete)
            }
            (state @ State::Streaming, Said::Event { .. } | Said::Bookmark { .. }) => (state, Means::Nothing),
            (State::Paging { .. }, Said::Page { token: Some(token), .. }) => {
                (State::Paging { token: Some(token) }, Means::Nothing)
            }
            (State::Paging { .. }, Said::Page { version, token: None }) => {
                (State::Watching { at: version }, Means::Complete)
            }
            // A broken watch resumes; a broken list is no list.
            (state @ State::Watching { .. }, Said::Closed | Said::Failed(Failure::Other)) => (state, Means::Nothing),
            (_, Said::Failed(Failure::NoStreaming)) => {
                self.streams = false;
                (State::Empty, Means::Nothing)
            }
            // A page goes on from any token, whatever the size of the one before.
            (state @ State::Paging { .. }, Said::Failed(Failure::TooLarge)) => {
                self.objects = (self.objects / PAGE_SHRINKS_BY).max(1);
                (state, Means::Nothing)
            }
            // A continue token that is too old ends the list; the first page starts another.
            (state @ State::Paging { .. }, Said::Failed(Failure::Other)) => (state, Means::Nothing),
            (_, _) => (State::Empty, Means::Nothing),
        };
        self.state = state;
        means
    }

    /// Somebody needs the whole list again.
    pub fn relist(&mut self) {
        self.state = State::Empty;
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How long to wait before asking again; `spread` is in 0..1.
    pub fn backoff(&mut self, spread: f64) -> Duration {
        let doubled = BACKOFF_MIN.saturating_mul(1 << self.failures.min(6)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        doubled.mul_f64(0.75 + spread.clamp(0.0, 1.0) / 4.0)
    }

    pub fn is_watching(&self) -> bool {
        matches!(self.state, State::Watching { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bookmark(version: &str, ends_list: bool) -> Said {
        Said::Bookmark { version: version.into(), ends_list }
    }

    fn watch(at: &str) -> Ask {
        Ask::Watch { at: at.into() }
    }

    #[test]
    fn a_streamed_list_is_complete_at_its_bookmark() {
        let mut machine = Machine::default();
        assert_eq!(machine.ask(), (Ask::StreamList, Means::Restart));
        assert_eq!(machine.hear(Said::Event { version: "3".into() }), Means::Nothing);
        assert_eq!(machine.hear(bookmark("4", false)), Means::Nothing);
        assert_eq!(machine.hear(bookmark("9", true)), Means::Complete);
        assert_eq!(machine.hear(Said::Event { version: "12".into() }), Means::Nothing);
        assert_eq!(machine.hear(Said::Closed), Means::Nothing);
        assert_eq!(machine.ask(), (watch("12"), Means::Nothing));
    }

    #[test]
    fn a_list_that_breaks_off_starts_again() {
        let mut machine = Machine::default();
        machine.ask();
        machine.hear(Said::Event { version: "3".into() });
        assert_eq!(machine.hear(Said::Closed), Means::Nothing);
        assert_eq!(machine.ask(), (Ask::StreamList, Means::Restart));
    }

    #[test]
    fn pages_where_streaming_is_refused() {
        let mut machine = Machine::default();
        machine.ask();
        machine.hear(Said::Failed(Failure::NoStreaming));
        let page = |token: Option<&str>| Ask::Page { token: token.map(str::to_owned), objects: 500 };
        assert_eq!(machine.ask(), (page(None), Means::Restart));
        let more = Said::Page { version: "7".into(), token: Some("t".into()) };
        assert_eq!(machine.hear(more), Means::Nothing);
        // A page that fails is asked for again, and nothing is listed twice.
        machine.hear(Said::Failed(Failure::Other));
        assert_eq!(machine.ask(), (page(Some("t")), Means::Nothing));
        machine.hear(Said::Failed(Failure::Expired));
        assert_eq!(machine.ask(), (page(None), Means::Restart));
        assert_eq!(machine.hear(Said::Page { version: "8".into(), token: None }), Means::Complete);
        assert_eq!(machine.ask(), (watch("8"), Means::Nothing));
    }

    #[test]
    fn a_page_that_is_too_large_is_asked_for_in_smaller_ones() {
        let mut machine = Machine::default();
        machine.ask();
        machine.hear(Said::Failed(Failure::NoStreaming));
        machine.ask();
        machine.hear(Said::Page { version: "7".into(), token: Some("t".into()) });
        for expected in [500, 62, 7, 1, 1] {
            let objects = match machine.ask() {
                (Ask::Page { token: Some(_), objects }, Means::Nothing) => objects,
                other => panic!("{other:?}"),
            };
            assert_eq!(objects, expected);
            assert_eq!(machine.hear(Said::Failed(Failure::TooLarge)), Means::Nothing);
        }
    }

    #[test]
    fn expired_lists_again_and_other_failures_resume() {
        let mut machine = Machine::default();
        machine.ask();
        machine.hear(bookmark("9", true));
        machine.hear(Said::Failed(Failure::Other));
        assert_eq!(machine.ask(), (watch("9"), Means::Nothing));
        machine.hear(Said::Failed(Failure::Expired));
        assert_eq!(machine.ask(), (Ask::StreamList, Means::Restart));
    }

    #[test]
    fn the_wait_doubles_up_to_its_limit() {
        let mut machine = Machine::default();
        let waits: Vec<_> = (0..9).map(|_| machine.backoff(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        machine.succeeded();
        assert_eq!(machine.backoff(0.0).as_millis(), 375);
    }
}
