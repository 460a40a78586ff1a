//! When a batch is due: a value that a table can test.

use tokio::time::Instant;

use super::limits::Limits;

/// What waits, as far as the time of its flush depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Window {
    /// Of the oldest and of the newest thing that waits.
    span: Option<(Instant, Instant)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Nothing waits.
    Never,
    At(Instant),
    Now,
}

impl Window {
    /// Something was submitted.
    pub fn note(&mut self, now: Instant) {
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
    }

    /// What waits now came since `since`, the start of the batch that is gone.
    pub fn restart(&mut self, since: Instant, is_empty: bool) {
        self.span = self.span.filter(|_| !is_empty).map(|(first, last)| (first.max(since), last.max(since)));
    }

    pub fn due(&self, now: Instant, files: usize, bytes: usize, limits: &Limits) -> Due {
        let Some((first, last)) = self.span else { return Due::Never };
        let at = (first + limits.wait_max).min(last + limits.silence);
        let is_full = files >= limits.files_max || bytes >= limits.bytes_max;
        if is_full || at <= now { Due::Now } else { Due::At(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Submissions at these tenths of a second; when the batch is due, if
    /// nothing else comes.
    fn check(submitted: &[u64], files: usize, bytes: usize, expected: Option<u64>) {
        let start = Instant::now();
        let at = |tenths: u64| start + Duration::from_millis(tenths * 100);
        let mut window = Window::default();
        submitted.iter().for_each(|tenths| window.note(at(*tenths)));
        let now = at(submitted.last().copied().unwrap_or(0));
        let due = window.due(now, files, bytes, &Limits::default());
        let expected =
            expected.map_or(Due::Never, |tenths| if at(tenths) == now { Due::Now } else { Due::At(at(tenths)) });
        assert_eq!(due, expected, "{submitted:?}");
    }

    #[test]
    fn whichever_is_first() {
        check(&[], 0, 0, None);
        check(&[0], 1, 1, Some(10));
        check(&[0, 5], 2, 1, Some(15));
        let busy: Vec<u64> = (0..=195).step_by(5).collect();
        check(&busy, 40, 1, Some(200));
        check(&[0, 3], 199, 1, Some(13));
        check(&[0, 3], 200, 1, Some(3));
        check(&[0, 3], 1, (1 << 20) - 1, Some(13));
        check(&[0, 3], 1, 1 << 20, Some(3));
        check(&[0, 300], 1, 1, Some(300));
    }

    #[test]
    fn what_came_during_a_flush_waits_from_its_start() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut window = Window::default();
        window.note(start);
        window.note(later(5));
        let mut gone = window;
        gone.restart(later(4), true);
        assert_eq!(gone.due(later(9), 0, 0, &Limits::default()), Due::Never);
        window.restart(later(4), false);
        assert_eq!(window.due(later(5), 1, 1, &Limits::default()), Due::At(later(6)));
    }
}
