//! A failure that repeats is told once: a log is for what is new.

#[derive(Clone, Debug, Default)]
pub struct Repeats(Option<String>);

impl Repeats {
    /// Whether the last one was another, or there was none.
    pub fn is_new(&mut self, failure: &str) -> bool {
        let is_new = self.0.as_deref() != Some(failure);
        if is_new {
            self.0 = Some(failure.to_owned());
        }
        is_new
    }

    /// It works: the next failure is told, whatever it is.
    pub fn end(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_when_it_begins_and_when_it_changes() {
        let mut repeats = Repeats::default();
        let told: Vec<_> = ["a", "a", "b", "b", "a"].iter().map(|failure| repeats.is_new(failure)).collect();
        assert_eq!(told, [true, false, true, false, true]);
        repeats.end();
        assert!(repeats.is_new("a"));
    }
}
