//! Progress of long work: one line that rewrites itself on a terminal, a log
//! line every few seconds otherwise.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use tidegate_store::Progress;

const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const LOG_INTERVAL: Duration = Duration::from_secs(5);

pub struct Meter {
    doing: &'static str,
    is_terminal: bool,
    told: Instant,
    is_drawn: bool,
}

impl Meter {
    pub fn new(doing: &'static str) -> Self {
        Self { doing, is_terminal: io::stderr().is_terminal(), told: Instant::now(), is_drawn: false }
    }

    pub fn tell(&mut self, progress: &Progress) {
        let interval = if self.is_terminal { REDRAW_INTERVAL } else { LOG_INTERVAL };
        if self.told.elapsed() < interval {
            return;
        }
        self.told = Instant::now();
        let text = shown(self.doing, progress);
        if self.is_terminal {
            self.draw(&text);
            self.is_drawn = true;
        } else {
            tracing::info!("{text}");
        }
    }

    /// Nothing depends on it: a terminal that is gone shows nothing.
    fn draw(&self, text: &str) {
        let mut terminal = io::stderr().lock();
        let _ = write!(terminal, "\r\x1b[K{text}").and_then(|()| terminal.flush());
    }
}

/// The line goes, whatever comes next.
impl Drop for Meter {
    fn drop(&mut self) {
        if self.is_drawn {
            self.draw("");
        }
    }
}

fn shown(doing: &str, Progress { step, done, total }: &Progress) -> String {
    match total {
        Some(total) if *total > 0 => {
            let percent = u128::from(*done.min(total)) * 100 / u128::from(*total);
            format!("{doing} {step}: {} of {} ({percent}%)", grouped(*done), grouped(*total))
        }
        _ => format!("{doing} {step}: {}", grouped(*done)),
    }
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is() {
        for (done, total, expected) in [
            (10_000, Some(1_000_000), "checking objects: 10,000 of 1,000,000 (1%)"),
            (7, Some(5), "checking objects: 7 of 5 (100%)"),
            (0, Some(0), "checking objects: 0"),
            (
                u64::MAX,
                Some(u64::MAX),
                "checking objects: 18,446,744,073,709,551,615 of 18,446,744,073,709,551,615 (100%)",
            ),
            (999, None, "checking objects: 999"),
        ] {
            assert_eq!(shown("checking", &Progress { step: "objects".into(), done, total }), expected);
        }
    }
}
