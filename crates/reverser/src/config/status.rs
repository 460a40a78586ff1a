//! Conditions as kstatus reads them: `Ready`, `Reconciling`, `Stalled`.
//!
//! Invariant: `lastTransitionTime` moves only when a condition's status does,
//! so that writing the same thing again changes nothing.

use serde_json::{Map, Value, json};

/// etcd and kubectl are not for logs: the rest of a long error is in ours.
const MESSAGE_CHARS_MAX: usize = 1_024;

/// Every reason that a condition of ours may have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    BranchFound,
    BranchNotFound,
    ConnectionFailed,
    SecretNotFound,
    SecretMalformed,
    InvalidUrl,
    InvalidBranch,
    InvalidFolder,
    InvalidRule,
    InvalidSpec,
    BranchNotAllowed,
    CrossNamespaceRefused,
    DestinationNotFound,
    DestinationNotReady,
    DiskFull,
    EncryptionInvalid,
    FolderOverlaps,
    Mirroring,
    ObjectsSkipped,
    PushFailed,
    RepoConfigNotFound,
    RepoConfigNotReady,
    Seeding,
    WaitingForTypes,
    WatchFailed,
    Watching,
}

/// `True`, `False` or `Unknown`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truth {
    True,
    False,
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    pub kind: &'static str,
    pub truth: Truth,
    pub reason: Reason,
    pub message: String,
}

/// One object's status, before it is compared with what is there.
#[derive(Clone, PartialEq, Debug)]
pub struct StatusBody {
    pub conditions: Vec<Condition>,
    pub extra: Map<String, Value>,
}

impl StatusBody {
    /// In force and working.
    pub fn ready(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(vec![Condition { kind: "Ready", truth: Truth::True, reason, message: message.into() }])
    }

    /// Not in force until somebody changes something.
    pub fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(vec![
            Condition { kind: "Ready", truth: Truth::False, reason, message: message.clone() },
            Condition { kind: "Stalled", truth: Truth::True, reason, message },
        ])
    }

    /// Under way: it gets there by itself.
    pub fn reconciling(truth: Truth, reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(vec![
            Condition { kind: "Ready", truth, reason, message: message.clone() },
            Condition { kind: "Reconciling", truth: Truth::True, reason, message },
        ])
    }

    fn new(conditions: Vec<Condition>) -> Self {
        Self { conditions, extra: Map::new() }
    }

    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(field.into(), value.into());
        self
    }

    #[must_use]
    pub fn and(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    pub fn is_ready(&self) -> bool {
        self.conditions.iter().any(|c| c.kind == "Ready" && c.truth == Truth::True)
    }

    /// The condition that an Event would tell of.
    pub fn main(&self) -> Option<&Condition> {
        self.conditions.first()
    }

    /// The whole `status`; `None` if `current` says the same already.
    pub fn against(&self, current: Option<&Value>, generation: i64, now: &str) -> Option<Value> {
        let before = current.and_then(|status| status.get("conditions")?.as_array());
        let conditions: Vec<_> =
            self.conditions.iter().map(|condition| condition.against(before, generation, now)).collect();
        let mut status = self.extra.clone();
        status.retain(|_, value| !value.is_null());
        status.insert("observedGeneration".into(), generation.into());
        status.insert("conditions".into(), conditions.into());
        let status = Value::Object(status);
        (current != Some(&status)).then_some(status)
    }
}

impl Condition {
    fn against(&self, before: Option<&Vec<Value>>, generation: i64, now: &str) -> Value {
        let truth = self.truth.text();
        let same = before.and_then(|conditions| {
            conditions.iter().find(|c| c["type"] == self.kind && c["status"] == truth)?["lastTransitionTime"].as_str()
        });
        json!({
            "type": self.kind, "status": truth, "reason": self.reason.text(),
            "message": self.message.chars().take(MESSAGE_CHARS_MAX).collect::<String>(),
            "observedGeneration": generation, "lastTransitionTime": same.unwrap_or(now),
        })
    }
}

impl Truth {
    pub fn text(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl Reason {
    /// The names of the variants are what the API says.
    pub fn text(self) -> String {
        format!("{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_again_changes_nothing() {
        let body = StatusBody::ready(Reason::Watching, "2 types").with("watched", 2);
        let first = body.against(None, 3, "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(first["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(body.against(Some(&first), 3, "2026-01-02T00:00:00Z"), None);
    }

    #[test]
    fn the_time_moves_with_the_status_alone() {
        let first = StatusBody::ready(Reason::Watching, "a").against(None, 1, "T1").unwrap();
        let other_text = StatusBody::ready(Reason::Watching, "b").against(Some(&first), 1, "T2").unwrap();
        assert_eq!(other_text["conditions"][0]["lastTransitionTime"], "T1");
        let stalled = StatusBody::stalled(Reason::InvalidRule, "c").against(Some(&other_text), 2, "T3").unwrap();
        assert_eq!(stalled["conditions"][0]["lastTransitionTime"], "T3");
        assert_eq!(stalled["conditions"][1]["type"], "Stalled");
        assert_eq!(stalled["observedGeneration"], 2);
    }

    #[test]
    fn long_messages_are_cut() {
        let status = StatusBody::ready(Reason::Watching, "x".repeat(9_000)).against(None, 1, "T").unwrap();
        assert_eq!(status["conditions"][0]["message"].as_str().unwrap().len(), MESSAGE_CHARS_MAX);
    }
}
