//! Says in the log that an endpoint cannot be called, once, and when it can be
//! again: its objects are tried without end, so nothing else would.

use std::sync::{Mutex, PoisonError};

use super::answer::HookError;

#[derive(Default)]
pub struct Away(Mutex<bool>);

#[derive(PartialEq, Eq, Debug)]
enum Turn<'e> {
    Away(&'e str),
    Back,
}

impl Away {
    /// How a call for this hook ended.
    pub fn hear(&self, hook: &str, error: Option<&HookError>) {
        match self.turn(error) {
            Some(Turn::Away(error)) => {
                tracing::warn!(hook, error, "the endpoint cannot be called: its objects wait and are tried again");
            }
            Some(Turn::Back) => tracing::info!(hook, "the endpoint can be called again"),
            None => {}
        }
    }

    /// Any answer, also a refusal, is one of an endpoint that is there.
    fn turn<'e>(&self, error: Option<&'e HookError>) -> Option<Turn<'e>> {
        let why = match error {
            Some(HookError::Unreachable(why)) => Some(why.as_str()),
            _ => None,
        };
        let mut is_away = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (std::mem::replace(&mut *is_away, why.is_some()), why) {
            (false, Some(why)) => Some(Turn::Away(why)),
            (true, None) => Some(Turn::Back),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_when_it_goes_and_when_it_is_back() {
        let gone = HookError::Unreachable("no route".into());
        let refused = HookError::Terminal("no".into());
        let away = Away::default();
        let turns = [
            (None, None),
            (Some(&gone), Some(Turn::Away("no route"))),
            (Some(&gone), None),
            (Some(&refused), Some(Turn::Back)),
            (None, None),
            (Some(&gone), Some(Turn::Away("no route"))),
            (None, Some(Turn::Back)),
        ];
        for (error, expected) in turns {
            assert_eq!(away.turn(error), expected, "{error:?}");
        }
    }
}
